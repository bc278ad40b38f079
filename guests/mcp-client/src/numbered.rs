//! What is kept under numbers that only grow.

use std::collections::VecDeque;

/// Values under keys each of which is greater than those before it, as the ids of requests are. What
/// came first is nearly always what goes first, which costs next to nothing here.
#[derive(Debug)]
pub struct Numbered<K, V>(VecDeque<(K, V)>);

impl<K, V> Default for Numbered<K, V> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K: Copy + Ord, V> Numbered<K, V> {
    /// Adds a value. Its key is greater than all that were added before.
    pub fn push(&mut self, key: K, value: V) {
        debug_assert!(self.0.back().is_none_or(|(last, _)| *last < key), "keys only grow");
        self.0.push_back((key, value));
    }

    pub fn get(&self, key: K) -> Option<&V> {
        self.at(key).map(|at| &self.0[at].1)
    }

    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.at(key).map(|at| &mut self.0[at].1)
    }

    /// Takes a value out.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let at = self.at(key)?;
        self.0.remove(at).map(|(_, value)| value)
    }

    /// In the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.0.into_iter().map(|(_, value)| value)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn at(&self, key: K) -> Option<usize> {
        match self.0.front() {
            Some((first, _)) if *first == key => Some(0),
            _ => self.0.binary_search_by_key(&key, |(known, _)| *known).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_in_any_order_and_the_others_stay_under_their_keys() {
        let mut numbered = Numbered::default();
        for key in [2, 3, 5, 8, 13] {
            numbered.push(key, key * 10);
        }
        assert_eq!(numbered.remove(2), Some(20));
        assert_eq!(numbered.remove(8), Some(80));
        assert_eq!(numbered.remove(8), None);
        *numbered.get_mut(5).unwrap() += 1;
        numbered.push(21, 210);
        let left: Vec<_> = numbered.iter().map(|(key, value)| (key, *value)).collect();
        assert_eq!(left, [(3, 30), (5, 51), (13, 130), (21, 210)]);
        assert_eq!((numbered.get(13), numbered.get(4)), (Some(&130), None));
    }
}
