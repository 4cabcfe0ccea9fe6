//! Evidence and judgement: why two documents, clusters or collections are alike, and how well the
//! result of a search agrees with known answers.

pub mod evaluate;
pub mod explain;

pub use evaluate::{EvaluateError, EvaluateParams, Evaluation, evaluate};
pub use explain::{ExplainError, ExplainParams, Explanation, explain, explain_in};
