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
    for cycle in cycles(edges(drafts, &numbers), MAX_SHOWN) {
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
    let mut numbers = HashMap::with_capacity(drafts.len());
    for (number, draft) in drafts.iter().enumerate() {
        if let Some(id) = &draft.id {
            numbers.entry(id.text.as_ref()).or_insert(number);
        }
    }
    numbers
}

fn edges(drafts: &[StoryDraft<'_>], numbers: &HashMap<&str, usize>) -> Edges {
    let number = |on: &JsonString<'_>| numbers.get(on.text.as_ref()).copied();
    drafts.iter().map(|draft| draft.depends_on.iter().filter_map(number).collect()).collect()
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
    let edge = first.depends_on.iter().find(|on| on.text == next.text);
    let Some(edge) = edge else { return };
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
        let components = Components::of(&edges);
        let round: Vec<Vec<usize>> = components.shortest_cycles().collect();
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

const UNSEEN: usize = usize::MAX;

/// Strongly connected components: only inside one can there be a cycle. Tarjan's algorithm, with
/// its call stack as a list.
struct Components<'e> {
    edges: &'e Edges,
    seen: usize,
    order: Vec<usize>,
    /// The earliest node each one can reach among those not yet in a component.
    lowest: Vec<usize>,
    pending: Vec<usize>,
    component_of: Vec<usize>,
    components: Vec<Vec<usize>>,
}

impl<'e> Components<'e> {
    fn of(edges: &'e Edges) -> Self {
        let unseen = vec![UNSEEN; edges.len()];
        let mut all = Self {
            edges,
            seen: 0,
            order: unseen.clone(),
            lowest: unseen.clone(),
            pending: Vec::new(),
            component_of: unseen,
            components: Vec::new(),
        };
        for node in 0..edges.len() {
            if all.order[node] == UNSEEN {
                all.walk_from(node);
            }
        }
        all
    }

    fn walk_from(&mut self, root: usize) {
        let mut path = vec![self.enter(root)];
        while let Some((node, targets)) = path.last_mut() {
            let node = *node;
            match targets.next() {
                Some(&target) if self.order[target] == UNSEEN => path.push(self.enter(target)),
                Some(&target) if self.component_of[target] == UNSEEN => {
                    self.lowest[node] = self.lowest[node].min(self.order[target]);
                }
                Some(_) => {}
                None => {
                    path.pop();
                    if let Some((parent, _)) = path.last() {
                        self.lowest[*parent] = self.lowest[*parent].min(self.lowest[node]);
                    }
                    self.close(node);
                }
            }
        }
    }

    /// The node, and the targets that are still to be visited.
    fn enter(&mut self, node: usize) -> (usize, std::slice::Iter<'e, usize>) {
        self.order[node] = self.seen;
        self.lowest[node] = self.seen;
        self.seen += 1;
        self.pending.push(node);
        (node, self.edges[node].iter())
    }

    /// The pending nodes from here on are a component, unless one of them reaches further back.
    fn close(&mut self, first: usize) {
        if self.lowest[first] < self.order[first] {
            return;
        }
        let begin = self.pending.iter().rposition(|node| *node == first).unwrap_or(0);
        let component = self.pending.split_off(begin);
        for node in &component {
            self.component_of[*node] = self.components.len();
        }
        self.components.push(component);
    }

    fn shortest_cycles(&self) -> impl Iterator<Item = Vec<usize>> {
        let starts = self.components.iter().filter_map(|component| component.iter().min());
        starts.filter_map(|start| self.shortest_cycle(*start))
    }

    /// The shortest path from a node back to it.
    fn shortest_cycle(&self, start: usize) -> Option<Vec<usize>> {
        let mut came_from = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for &next in &self.edges[node] {
                if next == start {
                    return Some(way_to(node, &came_from));
                }
                let is_inside = self.component_of[next] == self.component_of[start];
                if is_inside && !came_from.contains_key(&next) {
                    came_from.insert(next, node);
                    queue.push_back(next);
                }
            }
        }
        None
    }
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
