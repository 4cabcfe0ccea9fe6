//! Webs with planted copies and known answers, and naive oracles.
