//! From bytes to text, title and links: HTML, PDF, PostScript, Office; charsets and URLs.
