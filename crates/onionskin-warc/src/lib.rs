//! WARC, ARC and WACZ readers that survive what a crawl contains.
