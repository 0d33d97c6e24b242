//! Chains: what is asked of a value one after the other, such as `LIMIT.with(plan).take(key).allowed`.

use rhai::{Expr, FnCallExpr, ImmutableString, Position};

use super::file::variable;

/// One step of a chain.
#[derive(Clone, Copy)]
pub(super) enum Link<'a> {
    /// What the chain begins with.
    Root(&'a Expr),
    Method(&'a FnCallExpr, Position),
    Property(&'a str),
    /// `[index]`.
    Index(&'a Expr),
}

/// The links of an expression from left to right; one that is no chain is a root alone.
pub(super) fn links(expr: &Expr) -> Vec<Link<'_>> {
    let mut out = Vec::new();
    flatten(expr, &mut out);
    out
}

fn flatten<'a>(expr: &'a Expr, out: &mut Vec<Link<'a>>) {
    match expr {
        Expr::Dot(chain, ..) => {
            flatten(&chain.lhs, out);
            flatten(&chain.rhs, out);
        }
        Expr::Index(chain, ..) => {
            flatten(&chain.lhs, out);
            let from = out.len();
            flatten(&chain.rhs, out);
            // The interpreter hangs the rest of the chain on the index.
            if let Some(Link::Root(index)) = out.get(from).copied() {
                out[from] = Link::Index(index);
            }
        }
        Expr::MethodCall(call, position) => out.push(Link::Method(call, *position)),
        Expr::Property(names, _) => out.push(Link::Property(names.2.as_str())),
        other => out.push(Link::Root(other)),
    }
}

/// The name that a chain begins with, unless it goes on into an element of that.
pub(super) fn root_name<'a>(links: &[Link<'a>]) -> Option<&'a ImmutableString> {
    match links {
        [Link::Root(_), Link::Index(_) | Link::Property(_), ..] => None,
        [Link::Root(root), ..] => variable(root),
        _ => None,
    }
}
