//! What is remembered of fetches and commits, to know what a wait was for.

/// As many as a core may have under way.
const REMEMBERED: usize = 256;

/// The last few of a series.
pub struct Recent<T> {
    ring: Box<[Option<T>; REMEMBERED]>,
    next: usize,
}

impl<T: Copy> Recent<T> {
    pub fn new() -> Self {
        Self {
            ring: Box::new([None; REMEMBERED]),
            next: 0,
        }
    }

    #[inline]
    pub fn push(&mut self, one: T) {
        self.ring[self.next % REMEMBERED] = Some(one);
        self.next += 1;
    }

    /// The last first.
    #[inline]
    pub fn backwards(&self) -> impl Iterator<Item = &T> {
        (1..=REMEMBERED).map_while(|back| self.ring[self.next.wrapping_sub(back) % REMEMBERED].as_ref())
    }

    /// The longest row of them up to the last in which each is one of those looked for, the first first.
    pub fn row(&self, is_one: impl Fn(&T) -> bool) -> impl Iterator<Item = T> {
        let count = self.backwards().take_while(|one| is_one(one)).count();
        (self.next - count..self.next).filter_map(|number| self.ring[number % REMEMBERED])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_remembered_in_their_order() {
        let mut recent = Recent::new();
        assert_eq!(recent.backwards().count(), 0);
        for number in 0..REMEMBERED + 3 {
            recent.push(number);
        }
        let all: Vec<usize> = recent.backwards().copied().collect();
        assert_eq!(all, (3..REMEMBERED + 3).rev().collect::<Vec<_>>());
        assert_eq!(
            recent.row(|&number| number > REMEMBERED - 2).collect::<Vec<_>>(),
            (REMEMBERED - 1..REMEMBERED + 3).collect::<Vec<_>>()
        );
        assert_eq!(
            recent.row(|&number| number % 2 == 1).count(),
            0,
            "the last is none of them"
        );
        assert_eq!(recent.row(|_| true).count(), REMEMBERED);
    }
}
