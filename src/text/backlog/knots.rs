//! Strongly connected components: only inside one can there be a cycle. Never recurses.

use super::graph::Edges;

/// The component of each node, and the components.
pub fn knots(edges: &Edges) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut search = Search::new(edges);
    for node in 0..edges.len() {
        if search.order[node] == UNSEEN {
            search.walk_from(node);
        }
    }
    (search.knot_of, search.knots)
}

const UNSEEN: usize = usize::MAX;

/// Tarjan's algorithm with its call stack as a list.
struct Search<'e> {
    edges: &'e Edges,
    seen: usize,
    order: Vec<usize>,
    /// The earliest node each one can reach among those not yet in a component.
    lowest: Vec<usize>,
    pending: Vec<usize>,
    knot_of: Vec<usize>,
    knots: Vec<Vec<usize>>,
}

impl<'e> Search<'e> {
    fn new(edges: &'e Edges) -> Self {
        let unseen = vec![UNSEEN; edges.len()];
        Self {
            edges,
            seen: 0,
            order: unseen.clone(),
            lowest: unseen.clone(),
            pending: Vec::new(),
            knot_of: unseen,
            knots: Vec::new(),
        }
    }

    fn walk_from(&mut self, root: usize) {
        self.enter(root);
        let mut path = vec![(root, 0)];
        while let Some((node, edge)) = path.last_mut() {
            let node = *node;
            let target = self.edges[node].get(*edge).copied();
            *edge += 1;
            match target {
                Some(target) if self.order[target] == UNSEEN => {
                    self.enter(target);
                    path.push((target, 0));
                }
                Some(target) => self.see_again(node, target),
                None => {
                    path.pop();
                    self.leave(node, path.last().map(|(parent, _)| *parent));
                }
            }
        }
    }

    fn enter(&mut self, node: usize) {
        self.order[node] = self.seen;
        self.lowest[node] = self.seen;
        self.seen += 1;
        self.pending.push(node);
    }

    fn see_again(&mut self, node: usize, target: usize) {
        if self.knot_of[target] == UNSEEN {
            self.lowest[node] = self.lowest[node].min(self.order[target]);
        }
    }

    fn leave(&mut self, node: usize, parent: Option<usize>) {
        if let Some(parent) = parent {
            self.lowest[parent] = self.lowest[parent].min(self.lowest[node]);
        }
        if self.lowest[node] == self.order[node] {
            self.close_knot(node);
        }
    }

    fn close_knot(&mut self, first: usize) {
        let begin = self.pending.iter().rposition(|node| *node == first).unwrap_or(0);
        let knot = self.pending.split_off(begin);
        for node in &knot {
            self.knot_of[*node] = self.knots.len();
        }
        self.knots.push(knot);
    }
}
