//! A progress bar for long work, on a terminal only.

use std::io::IsTerminal;
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressStyle};

/// What is being done, and its bar.
type Shown = Option<(String, ProgressBar)>;

/// Shows what the engine reports: what it does, how much is done, and how much there is, 0 when not known.
pub(crate) fn reporter() -> impl Fn(&str, u64, u64) + Send + Sync + 'static {
    let on_terminal = std::io::stderr().is_terminal();
    let shown: Mutex<Shown> = Mutex::new(None);
    move |what, done, total| {
        // A bar that another thread died with is not worth dying for.
        let Ok(mut shown) = shown.lock() else { return };
        if !on_terminal {
            return;
        }
        if shown.as_ref().is_none_or(|(earlier, _)| earlier != what) {
            *shown = Some((what.to_owned(), bar(what)));
        }
        let Some((_, bar)) = shown.as_ref() else { return };
        // How much there is may not be known; then only the number moves.
        bar.set_length(total.max(done));
        bar.set_position(done);
        if total > 0 && done >= total {
            bar.finish_and_clear();
            *shown = None;
        }
    }
}

fn bar(what: &str) -> ProgressBar {
    let bar = ProgressBar::new(0).with_message(what.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar
}
