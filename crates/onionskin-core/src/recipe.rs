//! The recipe: everything that decides what is computed from a text, in one short spelling.
//!
//! `w4-rabin64-6x14r2+sketch+w4+l4` reads: shingles of four words, 64-bit Rabin fingerprints, 6
//! features of 14 minima of which 2 must agree; keep the minima, the shingles and the four-line
//! chunks too. `w5-rabin64-16x5r1-one` takes its minima out of the bins of one permutation. The
//! spelling stands in manifests, file names, legends and bench names alike. Speed and memory are
//! not part of it: they never change a result. Recipes that people ask for often have names too
//! ([`Recipe::NAMED`]); a name is an input only, and what is written down is the spelling.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use crate::chunk::{Chunking, UnknownChunking};
use crate::feature::{FeatureFilter, FilterError};
use crate::rabin::Width;
use crate::token::Unit;
use crate::unicode::Form;

/// How a set of chunks is summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SketchScheme {
    /// `6x14r2`: features over k·s minima.
    Features(FeatureFilter),
    /// `t128`: t minima of t permutations, no features.
    Minima(NonZeroU16),
    /// `b128`: the t smallest images of one permutation.
    Bottom(NonZeroU16),
}

impl SketchScheme {
    /// Numbers in a sketch.
    pub fn sketch_len(self) -> usize {
        match self {
            SketchScheme::Features(filter) => filter.permutations(),
            SketchScheme::Minima(t) | SketchScheme::Bottom(t) => usize::from(t.get()),
        }
    }

    /// The filter, where there is one.
    pub fn filter(self) -> Option<FeatureFilter> {
        match self {
            SketchScheme::Features(filter) => Some(filter),
            SketchScheme::Minima(_) | SketchScheme::Bottom(_) => None,
        }
    }
}

/// Where minima come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Minwise {
    /// A permutation for each: independent, as Broder 2000 has it.
    #[default]
    Independent,
    /// `-one`: the bins of one permutation ([`crate::sketch::OnePermutation`]). Many times as fast.
    One,
}

/// A whole configuration. `Display` and `FromStr` round-trip.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recipe {
    main: Chunking,
    form: Form,
    width: Width,
    scheme: SketchScheme,
    minwise: Minwise,
    keep_sketches: bool,
    kept_chunks: Vec<Chunking>,
}

/// Not a recipe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// The parts are not there.
    #[error(
        "`{0}` is not a recipe; write a name ({names}) or CHUNKING[-nfkc]-rabin64-SKETCH[-one][+sketch][+CHUNKING...], as in {default}",
        names = Recipe::names(),
        default = Recipe::DEFAULT
    )]
    Shape(String),
    /// A chunking that is not one.
    #[error(transparent)]
    Chunking(#[from] UnknownChunking),
    /// A filter that is not one.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A sketch that is not one.
    #[error(
        "unknown sketch `{0}`; known are <k>x<s>r<r> (features), t<n> (minima) and b<n> (bottom), n from 1 to 4096"
    )]
    Sketch(String),
    /// A bottom sketch is of one permutation as it is.
    #[error("`{0}` is of one permutation already; -one is for features and minima (t<n>)")]
    OneAlready(String),
    /// Something is kept twice.
    #[error("`{0}` is named twice after +")]
    Twice(String),
}

impl Recipe {
    /// The recipe of a scan that says nothing else: minima and features. Chunks take more room than
    /// the text, and can be made from the inputs when a search needs them.
    pub const DEFAULT: &str = "w4-rabin64-6x14r2+sketch";

    /// The default with the chunks of every search of the papers.
    pub const PAPERS: &str = "w4-rabin64-6x14r2+sketch+w4+l2+l4+sp";

    /// Recipes with a name: the name, the spelling, and what it is for.
    pub const NAMED: [(&str, &str, &str); 4] = [
        ("default", Recipe::DEFAULT, "minima and features"),
        ("papers", Recipe::PAPERS, "every kind of chunks too, for inputs that are read once"),
        ("broder", "w4-rabin64-6x14r2", "features alone, 48 bytes per document (Broder 2000)"),
        ("fast", "w4-rabin64-6x14r2-one+sketch", "minima of one permutation"),
    ];

    /// The names, for messages.
    fn names() -> String {
        Recipe::NAMED.map(|(name, ..)| name).join(", ")
    }

    /// The chunking that sketches and features are made of.
    pub fn main(&self) -> Chunking {
        self.main
    }

    /// The normal form of tokens.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The width of chunk fingerprints.
    pub fn width(&self) -> Width {
        self.width
    }

    /// How the main chunks are summed up.
    pub fn scheme(&self) -> SketchScheme {
        self.scheme
    }

    /// Where minima come from.
    pub fn minwise(&self) -> Minwise {
        self.minwise
    }

    /// Whether minima are kept. They always are where there are no features.
    pub fn keeps_sketches(&self) -> bool {
        self.keep_sketches || self.scheme.filter().is_none()
    }

    /// The chunkings whose fingerprints are kept, in order.
    pub fn kept_chunks(&self) -> &[Chunking] {
        &self.kept_chunks
    }
}

impl Recipe {
    /// The same features, with nothing kept beside them.
    pub fn without_kept(&self) -> Recipe {
        Recipe { keep_sketches: false, kept_chunks: Vec::new(), ..self.clone() }
    }

    /// The same, and the main chunks kept too, which are then before the others.
    pub fn with_main_chunks(&self) -> Recipe {
        let mut recipe = self.clone();
        if !recipe.kept_chunks.contains(&self.main) {
            recipe.kept_chunks.insert(0, self.main);
        }
        recipe
    }

    /// Only these chunks of the same tokens and fingerprints, and as little beside them as a recipe
    /// can have: one minimum. `None` if there are no chunks.
    pub fn only_chunks(&self, chunks: &[Chunking]) -> Option<Recipe> {
        let main = *chunks.first()?;
        Some(Recipe { main, kept_chunks: chunks.to_vec(), ..self.chunks_alone() })
    }

    /// The same main chunks, and as little beside them as a recipe can have: one minimum.
    pub fn chunks_alone(&self) -> Recipe {
        let scheme = SketchScheme::Minima(NonZeroU16::MIN);
        Recipe { scheme, minwise: Minwise::Independent, ..self.without_kept() }
    }
}

impl Default for Recipe {
    fn default() -> Recipe {
        Recipe::DEFAULT.parse().expect("the default recipe is spelled right")
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.main)?;
        if self.form == Form::Nfkc {
            f.write_str("-nfkc")?;
        }
        write!(f, "-rabin{}-", self.width.bits())?;
        match self.scheme {
            SketchScheme::Features(filter) => write!(f, "{filter}")?,
            SketchScheme::Minima(t) => write!(f, "t{t}")?,
            SketchScheme::Bottom(t) => write!(f, "b{t}")?,
        }
        if self.minwise == Minwise::One {
            f.write_str("-one")?;
        }
        if self.keep_sketches {
            f.write_str("+sketch")?;
        }
        self.kept_chunks.iter().try_for_each(|chunking| write!(f, "+{chunking}"))
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(spelling: &str) -> Result<Recipe, RecipeError> {
        let named = Recipe::NAMED.iter().find(|(name, ..)| *name == spelling);
        let spelling = named.map_or(spelling, |(_, spelling, _)| spelling);
        let shape = || RecipeError::Shape(spelling.to_owned());
        let mut pieces = spelling.split('+');
        let mut parts = pieces.next().unwrap_or_default().split('-');
        let main = parts.next().ok_or_else(shape)?.parse()?;
        let mut part = parts.next().ok_or_else(shape)?;
        let mut form = Form::Nfc;
        if part == "nfkc" {
            form = Form::Nfkc;
            part = parts.next().ok_or_else(shape)?;
        }
        let width = match part {
            "rabin64" => Width::Bits64,
            "rabin32" => Width::Bits32,
            _ => return Err(shape()),
        };
        let sketch = parts.next().ok_or_else(shape)?;
        let scheme = scheme(sketch)?;
        let minwise = match (parts.next(), scheme) {
            (None, _) => Minwise::Independent,
            (Some("one"), SketchScheme::Bottom(_)) => return Err(RecipeError::OneAlready(sketch.to_owned())),
            (Some("one"), _) => Minwise::One,
            (Some(_), _) => return Err(shape()),
        };
        if parts.next().is_some() {
            return Err(shape());
        }
        let mut recipe =
            Recipe { main, form, width, scheme, minwise, keep_sketches: false, kept_chunks: vec![] };
        for kept in pieces {
            if kept == "sketch" {
                if std::mem::replace(&mut recipe.keep_sketches, true) {
                    return Err(RecipeError::Twice(kept.to_owned()));
                }
                continue;
            }
            let chunking: Chunking = kept.parse()?;
            if recipe.kept_chunks.contains(&chunking) {
                return Err(RecipeError::Twice(kept.to_owned()));
            }
            recipe.kept_chunks.push(chunking);
        }
        Ok(recipe)
    }
}

fn scheme(spelling: &str) -> Result<SketchScheme, RecipeError> {
    let counted = |digits: &str| {
        let t: Option<NonZeroU16> = digits.parse().ok();
        t.filter(|t| t.get() <= 4096 && t.to_string() == digits)
            .ok_or_else(|| RecipeError::Sketch(spelling.to_owned()))
    };
    if let Some(digits) = spelling.strip_prefix('t') {
        Ok(SketchScheme::Minima(counted(digits)?))
    } else if let Some(digits) = spelling.strip_prefix('b') {
        Ok(SketchScheme::Bottom(counted(digits)?))
    } else if spelling.starts_with(|c: char| c.is_ascii_digit()) {
        Ok(SketchScheme::Features(spelling.parse()?))
    } else {
        Err(RecipeError::Sketch(spelling.to_owned()))
    }
}

impl Recipe {
    /// Whether any chunk is made of letters, which are cut apart from words.
    pub(crate) fn needs_letters(&self) -> bool {
        let letters = |chunking: &Chunking| matches!(chunking, Chunking::Shingles(Unit::Letter, _));
        letters(&self.main) || self.kept_chunks.iter().any(letters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_default_is_spelled_canonically() {
        assert_eq!(Recipe::default().to_string(), Recipe::DEFAULT);
    }

    #[test]
    fn names_are_spelled_canonically() {
        for (name, spelling, _) in Recipe::NAMED {
            let recipe: Recipe = name.parse().unwrap();
            assert_eq!(recipe.to_string(), spelling, "{name}");
        }
    }

    #[test]
    fn parts_of_a_recipe_are_recipes() {
        let recipe: Recipe = "w4-nfkc-rabin32-6x14r2-one+sketch+l4+sp".parse().unwrap();
        let with_main = recipe.with_main_chunks();
        assert_eq!(with_main.to_string(), "w4-nfkc-rabin32-6x14r2-one+sketch+w4+l4+sp");
        assert_eq!(with_main.with_main_chunks(), with_main);
        let only = recipe.only_chunks(&["l4".parse().unwrap(), "sp".parse().unwrap()]).unwrap();
        assert_eq!(only.to_string(), "l4-nfkc-rabin32-t1+l4+sp");
        assert_eq!(recipe.only_chunks(&[]), None);
        assert_eq!(recipe.without_kept().to_string(), "w4-nfkc-rabin32-6x14r2-one");
        assert_eq!(recipe.chunks_alone().to_string(), "w4-nfkc-rabin32-t1");
    }

    #[test]
    fn mistakes_are_told() {
        let error = |spelling: &str| spelling.parse::<Recipe>().unwrap_err().to_string();
        assert!(error("w4").contains("as in w4-rabin64-6x14r2"), "{}", error("w4"));
        assert!(error("w4").contains("a name (default, papers, broder, fast)"), "{}", error("w4"));
        assert!(error("").contains("unknown chunking"));
        assert!(error("x4-rabin64-t5").contains("unknown chunking `x4`"));
        assert!(error("w4-crc-t5").contains("not a recipe"));
        assert!(error("w4-rabin64-q5").contains("unknown sketch `q5`"));
        assert!(error("w4-rabin64-t0").contains("unknown sketch `t0`"));
        assert!(error("w4-rabin64-6x14r9").contains("r goes from 1 to k"));
        assert!(error("w4-rabin64-t5+w4+w4").contains("named twice"));
        assert!(error("w4-rabin64-t5-more").contains("not a recipe"));
        assert!(error("w4-rabin64-t5-one-more").contains("not a recipe"));
        assert!(error("w4-rabin64-b5-one").contains("`b5` is of one permutation already"));
    }

    proptest! {
        #[test]
        fn spelling_round_trips(
            main in "(w|c|l|ls)[1-9]|sp|sent|para|doc",
            nfkc: bool,
            wide: bool,
            sketch in "[1-9]x[1-9]r1(-one)?|t[1-9][0-9]{0,2}(-one)?|b[1-9][0-9]{0,2}",
            keep: bool,
            kept in prop::collection::btree_set("(w|c|l|ls)[1-9]|sp|sent|para|doc", 0..4),
        ) {
            let mut spelling = format!("{main}{}-rabin{}-{sketch}", if nfkc { "-nfkc" } else { "" }, if wide { 64 } else { 32 });
            if keep {
                spelling.push_str("+sketch");
            }
            for chunking in &kept {
                spelling.push('+');
                spelling.push_str(chunking);
            }
            let recipe: Recipe = spelling.parse().unwrap();
            prop_assert_eq!(recipe.to_string(), spelling.clone());
            prop_assert_eq!(recipe.to_string().parse(), Ok(recipe));
        }

        #[test]
        fn any_text_is_an_error_or_a_recipe(text in any::<String>()) {
            if let Ok(recipe) = text.parse::<Recipe>() {
                prop_assert_eq!(recipe.to_string().parse(), Ok(recipe));
            }
        }
    }
}
