//! Checks stories against each other: ids are unique, dependencies exist and have no cycles.
//!
//! Never recurses: a chain of 10,000 stories must not overflow the stack.

use std::collections::{HashMap, VecDeque};

use super::diagnostic::{Diagnostics, MAX_SHOWN, Severity, quoted};
use super::fields::JsonString;
use super::spelling::nearest_ids;
use super::story::StoryDraft;

/// A longer cycle is shortened to its two ends.
const MAX_NAMED: usize = 8;

pub fn check<'a>(found: &mut Diagnostics<'a>, drafts: &[StoryDraft<'a>]) {
    check_ids(found, drafts);
    let numbers = numbers(drafts);
    report_unknown(found, drafts, &numbers);
    let number = |on: &JsonString<'_>| numbers.get(on.text.as_ref()).copied();
    let edges = drafts.iter().map(|draft| draft.depends_on.iter().filter_map(number).collect());
    for cycle in cycles(edges.collect(), MAX_SHOWN) {
        report_cycle(found, drafts, &cycle);
    }
}

/// Ids become names of refs and folders, and some file systems ignore case.
fn check_ids<'a>(found: &mut Diagnostics<'a>, drafts: &[StoryDraft<'a>]) {
    let mut first_of: HashMap<String, &JsonString<'a>> = HashMap::with_capacity(drafts.len());
    for id in drafts.iter().filter_map(|draft| draft.id.as_ref()) {
        let first = *first_of.entry(id.text.to_lowercase()).or_insert(id);
        if std::ptr::eq(first, id) {
            continue;
        }
        let line = found.line(first.raw);
        let (second, taken) = (quoted(&id.text), quoted(&first.text));
        let message = if id.text == first.text {
            format!("duplicate id {second}; the story on line {line} has it too")
        } else {
            format!("the id {second} differs only by case from {taken} on line {line}")
        };
        found.error(id.raw, message, "change the id of one of them");
    }
}

/// By id; of duplicates the first.
fn numbers<'d>(drafts: &'d [StoryDraft<'_>]) -> HashMap<&'d str, usize> {
    // Of equal ids, the map keeps the one that it gets last.
    let last_first = drafts.iter().enumerate().rev();
    let ids = last_first.filter_map(|(at, draft)| Some((draft.id.as_ref()?.text.as_ref(), at)));
    ids.collect()
}

fn report_unknown<'a>(
    found: &mut Diagnostics<'a>,
    drafts: &[StoryDraft<'a>],
    numbers: &HashMap<&str, usize>,
) {
    let ids: Vec<&str> =
        drafts.iter().filter_map(|one| Some(one.id.as_ref()?.text.as_ref())).collect();
    let waits = drafts.iter().flat_map(|draft| draft.depends_on.iter().map(move |on| (draft, on)));
    let unknown = waits.filter(|(_, on)| !numbers.contains_key(on.text.as_ref()));
    for (nth, (draft, on)) in unknown.enumerate() {
        if found.is_full_of(Severity::Error) {
            break;
        }
        let missing = quoted(&on.text);
        let message = format!("{} depends on {missing}, which does not exist", draft.owner);
        // A suggestion costs a pass over all ids, so only the shown ones get one.
        let near = if nth < MAX_SHOWN { nearest_ids(&on.text, &ids) } else { Vec::new() };
        let help = suggestion(&near)
            .unwrap_or_else(|| format!("add a story {missing}, or remove it from `depends_on`"));
        found.error(on.raw, message, help);
    }
}

fn suggestion(near: &[&str]) -> Option<String> {
    let (last, others) = near.split_last()?;
    let others: Vec<String> = others.iter().map(|id| quoted(id)).collect();
    let or = if others.is_empty() { "" } else { " or " };
    Some(format!("did you mean {}{or}{}?", others.join(", "), quoted(last)))
}

fn report_cycle(found: &mut Diagnostics<'_>, drafts: &[StoryDraft<'_>], cycle: &[usize]) {
    let stories: Vec<&StoryDraft<'_>> =
        cycle.iter().filter_map(|number| drafts.get(*number)).collect();
    let Some(first) = stories.first() else { return };
    let Some(next) = stories.get(1).unwrap_or(first).id.as_ref() else { return };
    let Some(edge) = first.depends_on.iter().find(|on| on.text == next.text) else { return };
    let names = names(&stories);
    let (message, help) = if stories.len() == 1 {
        (format!("{} depends on itself: {names}", first.owner), "remove it from its `depends_on`")
    } else {
        (format!("dependency cycle: {names}"), "remove one of these dependencies")
    };
    found.error(edge.raw, message, help);
}

/// `A` → `B` → `A`
fn names(stories: &[&StoryDraft<'_>]) -> String {
    let ids = stories.iter().chain(stories.first()).filter_map(|one| one.id.as_ref());
    let mut named: Vec<String> = ids.map(|id| quoted(&id.text)).collect();
    if named.len() > MAX_NAMED {
        let left_out = named.len() - MAX_NAMED;
        let ends = MAX_NAMED / 2;
        named.splice(ends..named.len() - ends, [format!("… {left_out} more …")]);
    }
    named.join(" → ")
}

/// `edges[n]` are the nodes that node `n` points to.
pub type Edges = Vec<Vec<usize>>;

/// Different cycles, each as its nodes in order, beginning with the lowest.
///
/// A graph can have more cycles than can be listed, so those that share their first edge count
/// as one. If fewer than `limit` are returned, removing these edges leaves no cycle.
pub fn cycles(mut edges: Edges, limit: usize) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    while found.len() < limit {
        let (starts, component_of) = components(&edges);
        let shortest = |start| shortest_cycle(&edges, &component_of, start);
        let round: Vec<Vec<usize>> = starts.into_iter().filter_map(shortest).collect();
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

/// Strongly connected components: only inside one can there be a cycle. Kosaraju's algorithm.
/// Returns the lowest node of each, those first that others lead to, and for each node that of its
/// component.
fn components(edges: &Edges) -> (Vec<usize>, Vec<usize>) {
    let mut backwards = vec![Vec::new(); edges.len()];
    for (from, targets) in edges.iter().enumerate() {
        targets.iter().for_each(|to| backwards[*to].push(from));
    }
    let mut seen = vec![false; edges.len()];
    let all = 0..edges.len();
    let left: Vec<usize> = all.flat_map(|root| walk_from(root, edges, &mut seen)).collect();
    seen.fill(false);
    let (mut starts, mut component_of) = (Vec::new(), vec![0; edges.len()]);
    for root in left.into_iter().rev() {
        let component = walk_from(root, &backwards, &mut seen);
        let Some(&lowest) = component.iter().min() else { continue };
        component.iter().for_each(|node| component_of[*node] = lowest);
        starts.push(lowest);
    }
    starts.reverse();
    (starts, component_of)
}

/// The nodes that can be reached and were not seen before, in the order in which a search leaves
/// them for good.
fn walk_from(root: usize, edges: &Edges, seen: &mut [bool]) -> Vec<usize> {
    let (mut left, mut path) = (Vec::new(), Vec::new());
    let mut next = Some(root).filter(|root| !seen[*root]);
    loop {
        if let Some(node) = next {
            seen[node] = true;
            path.push((node, edges[node].iter()));
        }
        let Some((node, targets)) = path.last_mut() else { return left };
        next = targets.find(|target| !seen[**target]).copied();
        if next.is_none() {
            left.push(*node);
            path.pop();
        }
    }
}

/// The shortest path from a node back to it.
fn shortest_cycle(edges: &Edges, component_of: &[usize], start: usize) -> Option<Vec<usize>> {
    let mut came_from = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for &next in &edges[node] {
            if next == start {
                let way = std::iter::successors(Some(node), |node| came_from.get(node).copied());
                let way: Vec<usize> = way.collect();
                return Some(way.into_iter().rev().collect());
            }
            let is_inside = component_of[next] == component_of[start];
            if is_inside && !came_from.contains_key(&next) {
                came_from.insert(next, node);
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn each_cycle_is_found_once_and_shortest() {
        for (edges, found) in [
            (vec![], vec![]),
            (vec![vec![1], vec![]], vec![]),
            (vec![vec![0]], vec![vec![0]]),
            (vec![vec![1], vec![0]], vec![vec![0, 1]]),
            // A detour over 2 exists, but the short path is reported.
            (vec![vec![2, 1], vec![0], vec![1]], vec![vec![0, 1], vec![0, 2, 1]]),
            // Two cycles through one node.
            (vec![vec![1, 2], vec![0], vec![0]], vec![vec![0, 1], vec![0, 2]]),
            // A node that only leads to a cycle is not part of it.
            (vec![vec![1], vec![2], vec![1]], vec![vec![1, 2]]),
            (vec![vec![1], vec![0, 1]], vec![vec![0, 1], vec![1]]),
        ] {
            assert_eq!(cycles(edges.clone(), 50), found, "{edges:?}");
        }
    }

    #[test]
    fn long_chains_and_long_cycles_need_no_stack() {
        let chain: Edges = (1..=100_000).map(|next| vec![next]).chain([vec![]]).collect();
        assert!(cycles(chain.clone(), 50).is_empty());
        let mut cycle = chain;
        cycle[100_000].push(0);
        let found = cycles(cycle, 50);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].len(), 100_001);
    }

    #[test]
    fn the_limit_holds() {
        let all_to_all: Edges = (0..60).map(|_| (0..60).collect()).collect();
        assert_eq!(cycles(all_to_all, 7).len(), 7);
    }

    #[test]
    fn the_limit_holds_when_one_round_finds_more() {
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

    fn is_cycle(edges: &Edges, cycle: &[usize]) -> bool {
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
        fn cycles_are_found_exactly_when_a_node_reaches_itself(edges in graphs()) {
            let found = cycles(edges.clone(), 1000);
            let naive = (0..edges.len()).any(|node| reaches_itself(&edges, node));
            prop_assert_eq!(!found.is_empty(), naive);
            prop_assert!(found.iter().all(|cycle| is_cycle(&edges, cycle)));
            prop_assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len());
            let mut left = edges;
            found.iter().for_each(|cycle| remove_first_edge(&mut left, cycle));
            prop_assert!(!(0..left.len()).any(|node| reaches_itself(&left, node)));
        }
    }
}
