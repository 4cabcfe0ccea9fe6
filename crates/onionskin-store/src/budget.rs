//! How much memory a stage may use.
//!
//! Every stage takes a budget and spills past it. The budget is a plain number of bytes, parsed
//! once at the edge and handed down in parts.

use std::fmt;
use std::str::FromStr;

/// What a machine is taken to have when it does not say.
const FALLBACK_BYTES: u64 = 1 << 30;

/// The suffixes a budget may carry; a lone letter and its `iB` form are powers of 1024, `B` after a
/// letter too: people who write `2GB` for memory mean what the memory module says.
const UNITS: [(&str, u32); 5] = [("K", 10), ("M", 20), ("G", 30), ("T", 40), ("P", 50)];

/// A number of bytes of memory that a stage may hold at once. Never zero.
///
/// ```
/// use onionskin_store::MemoryBudget;
/// let budget: MemoryBudget = "1.5G".parse()?;
/// assert_eq!(budget.bytes(), 3 << 29);
/// assert_eq!(budget.to_string(), "1536M");
/// # Ok::<(), onionskin_store::ParseBudgetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryBudget(u64);

/// Why a text is not a memory budget.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseBudgetError {
    /// No number at the front, or a unit that is not known.
    #[error("{text:?} is not an amount of memory\nhint: write bytes or a unit, as in 512M, 2G, 1.5GiB")]
    Unreadable {
        /// What was given.
        text: String,
    },
    /// Nothing at all.
    #[error("a memory budget of zero leaves no room to work")]
    Zero,
    /// More than 64 bits of bytes.
    #[error("{text:?} is more memory than 64 bits can count")]
    TooLarge {
        /// What was given.
        text: String,
    },
}

impl MemoryBudget {
    /// A budget of this many bytes; one byte at least.
    pub const fn from_bytes(bytes: u64) -> MemoryBudget {
        MemoryBudget(if bytes == 0 { 1 } else { bytes })
    }

    /// A budget of this many mebibytes; one at least.
    pub const fn from_mib(mib: u64) -> MemoryBudget {
        MemoryBudget::from_bytes(if mib == 0 { 1 << 20 } else { mib.saturating_mul(1 << 20) })
    }

    /// Half of the machine's memory, or of what its control group allows if that is less; 1 GiB
    /// where neither says.
    pub fn default_for_machine() -> MemoryBudget {
        let machine = crate::process::machine_memory().map_or(FALLBACK_BYTES, |total| total / 2);
        MemoryBudget::from_bytes(machine)
    }

    /// The bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// The bytes as a length in memory.
    pub fn len(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Always false: a budget is never zero.
    pub const fn is_empty(self) -> bool {
        false
    }

    /// An equal share for each of `parts` users.
    pub const fn split(self, parts: u64) -> MemoryBudget {
        MemoryBudget::from_bytes(self.0 / if parts == 0 { 1 } else { parts })
    }

    /// The share `numerator / denominator` of the budget.
    pub const fn share(self, numerator: u64, denominator: u64) -> MemoryBudget {
        let denominator = if denominator == 0 { 1 } else { denominator };
        let bytes = (self.0 as u128 * numerator as u128) / denominator as u128;
        MemoryBudget::from_bytes(if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 })
    }
}

impl FromStr for MemoryBudget {
    type Err = ParseBudgetError;

    fn from_str(text: &str) -> Result<MemoryBudget, ParseBudgetError> {
        let unreadable = || ParseBudgetError::Unreadable { text: text.to_owned() };
        let too_large = || ParseBudgetError::TooLarge { text: text.to_owned() };
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let unit = unit.trim_start().to_ascii_uppercase();
        let shift = match unit.as_str() {
            "" | "B" => 0,
            unit => {
                let letter = unit.strip_suffix("IB").or_else(|| unit.strip_suffix('B')).unwrap_or(unit);
                UNITS
                    .iter()
                    .find(|(name, _)| *name == letter)
                    .map(|&(_, shift)| shift)
                    .ok_or_else(unreadable)?
            }
        };
        // Whole and fraction apart, in integers: a float would round budgets above 2^53.
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || fraction.len() > 18 {
            return Err(unreadable());
        }
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_large())? };
        let scale = 10u128.pow(u32::try_from(fraction.len()).map_err(|_| unreadable())?);
        let fraction: u128 =
            if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| unreadable())? };
        let bytes = whole
            .checked_mul(1u128 << shift)
            .and_then(|bytes| bytes.checked_add((fraction << shift) / scale))
            .ok_or_else(too_large)?;
        let bytes = u64::try_from(bytes).map_err(|_| too_large())?;
        if bytes == 0 { Err(ParseBudgetError::Zero) } else { Ok(MemoryBudget(bytes)) }
    }
}

/// The shortest spelling that parses back to the same number of bytes.
impl fmt::Display for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, shift) in UNITS.iter().rev() {
            if self.0.trailing_zeros() >= *shift {
                return write!(f, "{}{name}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings_of_a_budget() {
        for (text, bytes) in [
            ("512M", 512 << 20),
            ("1G", 1 << 30),
            ("2GiB", 2 << 30),
            ("2gb", 2 << 30),
            ("1.5G", 3 << 29),
            (".5K", 512),
            ("4096", 4096),
            (" 10 k ", 10 << 10),
            ("7B", 7),
        ] {
            assert_eq!(text.parse::<MemoryBudget>().map(MemoryBudget::bytes), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_budget_is_refused() {
        for text in ["", "G", "1X", "1.2.3G", "-1", "1 2", ".", "٣G"] {
            assert!(
                matches!(text.parse::<MemoryBudget>(), Err(ParseBudgetError::Unreadable { .. })),
                "{text}"
            );
        }
        assert_eq!("0".parse::<MemoryBudget>(), Err(ParseBudgetError::Zero));
        assert!(matches!("99999999P".parse::<MemoryBudget>(), Err(ParseBudgetError::TooLarge { .. })));
        let digits = "9".repeat(100);
        assert!(matches!(digits.parse::<MemoryBudget>(), Err(ParseBudgetError::TooLarge { .. })));
    }

    #[test]
    fn parts_are_never_nothing() {
        assert_eq!(MemoryBudget::from_bytes(3).split(7).bytes(), 1);
        assert_eq!(MemoryBudget::from_mib(3).split(0).bytes(), 3 << 20);
        assert_eq!(MemoryBudget::from_bytes(1000).share(3, 10).bytes(), 300);
        assert!(MemoryBudget::default_for_machine().bytes() > 1 << 20);
    }

    proptest! {
        #[test]
        fn display_parses_back(bytes in 1u64..) {
            let budget = MemoryBudget::from_bytes(bytes);
            prop_assert_eq!(budget.to_string().parse::<MemoryBudget>(), Ok(budget));
        }
    }
}
