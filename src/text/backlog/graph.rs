//! Cycles in a graph of numbered nodes.
//!
//! Never recurses: a chain of 10,000 nodes must not overflow the stack.

use std::collections::{HashMap, VecDeque};

use super::knots::knots;

/// `edges[n]` are the nodes that node `n` points to.
pub type Edges = Vec<Vec<usize>>;

/// Different cycles, each as its nodes in order, beginning with the lowest.
///
/// A graph can have more cycles than can be listed, so those that share their first edge count
/// as one. If fewer than `limit` are returned, removing these edges leaves no cycle.
pub fn cycles(mut edges: Edges, limit: usize) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    while found.len() < limit {
        let (knot_of, knots) = knots(&edges);
        let round = knots.iter().filter_map(|knot| shortest_cycle(&edges, &knot_of, knot));
        let round: Vec<Vec<usize>> = round.collect();
        if round.is_empty() {
            break;
        }
        for cycle in &round {
            remove_first_edge(&mut edges, cycle);
        }
        found.extend(round);
    }
    found.truncate(limit);
    found
}

fn remove_first_edge(edges: &mut Edges, cycle: &[usize]) {
    let Some(&from) = cycle.first() else { return };
    let to = cycle.get(1).copied().unwrap_or(from);
    edges[from].retain(|target| *target != to);
}

/// The shortest path from the component's lowest node back to it.
fn shortest_cycle(edges: &Edges, knot_of: &[usize], knot: &[usize]) -> Option<Vec<usize>> {
    let start = *knot.iter().min()?;
    let mut came_from = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for &next in &edges[node] {
            if next == start {
                return Some(way_to(node, &came_from));
            }
            if knot_of[next] == knot_of[start] && !came_from.contains_key(&next) {
                came_from.insert(next, node);
                queue.push_back(next);
            }
        }
    }
    None
}

fn way_to(end: usize, came_from: &HashMap<usize, usize>) -> Vec<usize> {
    let backwards = std::iter::successors(Some(end), |node| came_from.get(node).copied());
    let mut way: Vec<usize> = backwards.collect();
    way.reverse();
    way
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn names_each_circle_once_and_shortest() {
        for (edges, found) in [
            (vec![], vec![]),
            (vec![vec![1], vec![]], vec![]),
            (vec![vec![0]], vec![vec![0]]),
            (vec![vec![1], vec![0]], vec![vec![0, 1]]),
            // A detour over 2 exists, but the short path is reported.
            (vec![vec![2, 1], vec![0], vec![1]], vec![vec![0, 1], vec![0, 2, 1]]),
            // Two circles through one node.
            (vec![vec![1, 2], vec![0], vec![0]], vec![vec![0, 1], vec![0, 2]]),
            // What only leads to a circle is not part of it.
            (vec![vec![1], vec![2], vec![1]], vec![vec![1, 2]]),
            (vec![vec![1], vec![0, 1]], vec![vec![0, 1], vec![1]]),
        ] {
            assert_eq!(cycles(edges.clone(), 50), found, "{edges:?}");
        }
    }

    #[test]
    fn a_long_chain_and_a_long_circle_cost_no_stack() {
        let chain: Edges = (1..=100_000).map(|next| vec![next]).chain([vec![]]).collect();
        assert!(cycles(chain.clone(), 50).is_empty());
        let mut circle = chain;
        circle[100_000].push(0);
        let found = cycles(circle, 50);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].len(), 100_001);
    }

    #[test]
    fn stops_at_the_limit() {
        let all_to_all: Edges = (0..60).map(|_| (0..60).collect()).collect();
        assert_eq!(cycles(all_to_all, 7).len(), 7);
    }

    #[test]
    fn stops_at_the_limit_also_when_one_round_finds_more() {
        let pairs: Edges = (0..40).map(|node: usize| vec![node ^ 1]).collect();
        assert_eq!(cycles(pairs.clone(), 7).len(), 7);
        assert_eq!(cycles(pairs, 50).len(), 20);
    }

    fn reaches_itself(edges: &Edges, start: usize) -> bool {
        let mut seen = HashSet::new();
        let mut open = edges[start].clone();
        while let Some(node) = open.pop() {
            if seen.insert(node) {
                open.extend(&edges[node]);
            }
        }
        seen.contains(&start)
    }

    fn is_circle(edges: &Edges, cycle: &[usize]) -> bool {
        let next = cycle.iter().cycle().skip(1);
        let distinct = cycle.iter().collect::<HashSet<_>>().len() == cycle.len();
        distinct && cycle.iter().zip(next).all(|(from, to)| edges[*from].contains(to))
    }

    fn graphs() -> impl Strategy<Value = Edges> {
        (1..=60_usize, 0..120_usize).prop_flat_map(|(nodes, edges)| {
            let pairs = prop::collection::vec((0..nodes, 0..nodes), 0..=edges);
            pairs.prop_map(move |pairs| {
                let mut edges = vec![vec![]; nodes];
                pairs.into_iter().for_each(|(from, to): (usize, usize)| edges[from].push(to));
                edges
            })
        })
    }

    proptest! {
        #[test]
        fn agrees_with_asking_every_node(edges in graphs()) {
            let found = cycles(edges.clone(), 1000);
            let naive = (0..edges.len()).any(|node| reaches_itself(&edges, node));
            prop_assert_eq!(!found.is_empty(), naive);
            prop_assert!(found.iter().all(|cycle| is_circle(&edges, cycle)));
            prop_assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
            let mut left = edges;
            found.iter().for_each(|cycle| remove_first_edge(&mut left, cycle));
            prop_assert!(!(0..left.len()).any(|node| reaches_itself(&left, node)));
        }
    }
}
