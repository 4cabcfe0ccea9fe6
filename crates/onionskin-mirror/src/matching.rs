//! Pages to replicas, one to one.

use onionskin_core::Packed;

/// The choice that each left vertex got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matched(pub Vec<u32>);

/// Steps after which a matching is given up: where everything links to everything, no assignment
/// says anything.
const MOST_STEPS: u64 = 50_000_000;

/// Gives every left vertex one of its choices, none twice; `None` when that cannot be done. The
/// first choice is taken where it is free, so that the answer does not depend on anything but the
/// input.
pub(crate) fn saturate(choices: &[Vec<u32>], n_right: usize) -> Option<Matched> {
    if choices.len() > n_right {
        return None;
    }
    let mut left_of: Vec<Packed<u32>> = vec![Packed::NONE; n_right];
    let mut right_of = vec![0; choices.len()];
    // Those with a single choice leave no doubt; they go first, and in the usual case that is all.
    let mut order: Vec<u32> = (0..choices.len() as u32).collect();
    order.sort_by_key(|&left| (choices[left as usize].len().min(2), left));
    let mut steps = 0u64;
    for &left in &order {
        if let Some(&right) = choices[left as usize].iter().find(|&&right| left_of[right as usize].is_none())
        {
            left_of[right as usize] = left.into();
            right_of[left as usize] = right;
            continue;
        }
        // Breadth first along paths that take a choice from one and give it another.
        let mut came_from: Vec<Packed<u32>> = vec![Packed::NONE; n_right];
        let mut queue = std::collections::VecDeque::from([left]);
        let mut end = None;
        'search: while let Some(at) = queue.pop_front() {
            for &right in &choices[at as usize] {
                steps += 1;
                if steps > MOST_STEPS {
                    return None;
                }
                if came_from[right as usize].is_some() {
                    continue;
                }
                came_from[right as usize] = at.into();
                match left_of[right as usize].get() {
                    Some(left) => queue.push_back(left),
                    None => {
                        end = Some(right);
                        break 'search;
                    }
                }
            }
        }
        let mut right = end?;
        loop {
            let at = came_from[right as usize].get()?;
            let before = right_of[at as usize];
            left_of[right as usize] = at.into();
            right_of[at as usize] = right;
            if at == left {
                break;
            }
            right = before;
        }
    }
    Some(Matched(right_of))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive_possible(choices: &[Vec<u32>], used: &mut Vec<bool>) -> bool {
        let Some((first, rest)) = choices.split_first() else { return true };
        first.iter().any(|&right| {
            let right = right as usize;
            if used[right] {
                return false;
            }
            used[right] = true;
            let possible = naive_possible(rest, used);
            used[right] = false;
            possible
        })
    }

    proptest! {
        #[test]
        fn found_where_there_is_one(choices in prop::collection::vec(prop::collection::btree_set(0u32..6, 0..4), 0..7)) {
            let choices: Vec<Vec<u32>> = choices.into_iter().map(|set| set.into_iter().collect()).collect();
            let found = saturate(&choices, 6);
            prop_assert_eq!(found.is_some(), naive_possible(&choices, &mut vec![false; 6]));
            if let Some(Matched(rights)) = found {
                let mut distinct = rights.clone();
                distinct.sort_unstable();
                distinct.dedup();
                prop_assert_eq!(distinct.len(), choices.len());
                prop_assert!(rights.iter().zip(&choices).all(|(right, choices)| choices.contains(right)));
            }
        }
    }
}
