//! What each element means for text: whether it breaks the line, has an end, or hides what is in
//! it.

use crate::text::Break;

/// What an element means for text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    /// The break before and after it.
    pub(crate) around: Break,
    /// It has no content and no end tag.
    pub(crate) void: bool,
    /// A block whose end tag also ends whatever was left open in it.
    pub(crate) container: bool,
    /// Its content is never shown, or never as text.
    pub(crate) unseen: bool,
    /// Its content is not markup and not shown; the tokenizer skips it.
    pub(crate) skipped: bool,
    /// Line breaks in it are kept.
    pub(crate) keeps_lines: bool,
}

impl Meaning {
    const fn new(around: Break) -> Self {
        Meaning { around, void: false, container: false, unseen: false, skipped: false, keeps_lines: false }
    }

    const fn void(mut self) -> Self {
        self.void = true;
        self
    }

    const fn container(mut self) -> Self {
        self.container = true;
        self
    }

    const fn unseen(mut self) -> Self {
        self.unseen = true;
        self
    }

    const fn skipped(mut self) -> Self {
        self.skipped = true;
        self
    }

    const fn keeps_lines(mut self) -> Self {
        self.keeps_lines = true;
        self
    }
}

macro_rules! tags {
    ($($variant:ident $name:literal $around:ident $($flag:ident)*,)*) => {
        /// The elements that mean something here; every other one is [`Tag::Other`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Tag { Other, $($variant,)* }

        static MEANINGS: [Meaning; Tag::COUNT] = [
            Meaning::new(Break::None),
            $(Meaning::new(Break::$around)$(.$flag())*,)*
        ];

        impl Tag {
            /// How many there are, [`Tag::Other`] included.
            pub(crate) const COUNT: usize = [Tag::Other, $(Tag::$variant,)*].len();

            /// By name in lower case.
            pub(crate) fn from_name(name: &[u8]) -> Tag {
                match name {
                    $($name => Tag::$variant,)*
                    _ => Tag::Other,
                }
            }
        }
    };
}

impl Tag {
    /// What the element means.
    pub(crate) fn meaning(self) -> &'static Meaning {
        &MEANINGS[self as usize]
    }
}

// Some decisions, and why:
// - `noscript` is out. It is for readers whose browser runs no scripts; what is in it is a second
//   copy of what a script shows, or a line asking for JavaScript that whole sites share.
// - `svg` is out: the words in icons and charts repeat through a template. `math` is in, but not
//   its `annotation`, which says the same formula once more in another language.
// - The fallback of `video`, `audio` and `canvas` is out, that of `object` is in: it is often the
//   real content.
// - `template` is inert; `dialog` is closed unless it says `open` (the builder looks).
// - Options and buttons are in: they can be read on the page.
// - Images give no text: the alternative text is not shown beside the image, and a copy with other
//   images is a copy.
tags! {
    A b"a" None,
    Abbr b"abbr" None,
    Address b"address" Line container,
    Annotation b"annotation" None unseen,
    AnnotationXml b"annotation-xml" None unseen,
    Area b"area" None void,
    Article b"article" Paragraph container,
    Aside b"aside" Paragraph container,
    Audio b"audio" None unseen,
    B b"b" None,
    Base b"base" None void,
    Basefont b"basefont" None void,
    Bgsound b"bgsound" None void,
    Blockquote b"blockquote" Paragraph container,
    Body b"body" Line container,
    Br b"br" None void,
    Button b"button" Space container,
    Canvas b"canvas" None unseen,
    Caption b"caption" Line container,
    Center b"center" Line container,
    Code b"code" None,
    Col b"col" None void,
    Dd b"dd" Line container,
    Details b"details" Paragraph container,
    Dialog b"dialog" Line container,
    Dir b"dir" Line container,
    Div b"div" Line container,
    Dl b"dl" Paragraph container,
    Dt b"dt" Line container,
    Em b"em" None,
    Embed b"embed" None void,
    Fieldset b"fieldset" Line container,
    Figcaption b"figcaption" Line container,
    Figure b"figure" Paragraph container,
    Footer b"footer" Paragraph container,
    Form b"form" Line container,
    Frame b"frame" None void,
    Frameset b"frameset" Line container,
    H1 b"h1" Paragraph container,
    H2 b"h2" Paragraph container,
    H3 b"h3" Paragraph container,
    H4 b"h4" Paragraph container,
    H5 b"h5" Paragraph container,
    H6 b"h6" Paragraph container,
    Head b"head" Line container,
    Header b"header" Paragraph container,
    Hgroup b"hgroup" Paragraph container,
    Hr b"hr" Paragraph void,
    Html b"html" Line container,
    I b"i" None,
    Iframe b"iframe" Line skipped,
    Image b"image" None void,
    Img b"img" None void,
    Input b"input" None void,
    Keygen b"keygen" None void,
    Legend b"legend" Line container,
    Li b"li" Line container,
    Link b"link" None void,
    Listing b"listing" Paragraph container keeps_lines,
    Main b"main" Paragraph container,
    Map b"map" None,
    Marquee b"marquee" Line container,
    Math b"math" None,
    Menu b"menu" Line container,
    Meta b"meta" None void,
    Nav b"nav" Paragraph container,
    Noembed b"noembed" None skipped,
    Noframes b"noframes" None skipped,
    Noscript b"noscript" None skipped,
    Object b"object" None container,
    Ol b"ol" Line container,
    Optgroup b"optgroup" Line,
    Option b"option" Line,
    P b"p" Paragraph container,
    Param b"param" None void,
    Plaintext b"plaintext" Paragraph keeps_lines,
    Pre b"pre" Paragraph container keeps_lines,
    Rp b"rp" None,
    Rt b"rt" None,
    Script b"script" None skipped,
    Section b"section" Paragraph container,
    Select b"select" Line container,
    Source b"source" None void,
    Span b"span" None,
    Strong b"strong" None,
    Style b"style" None skipped,
    Summary b"summary" Line container,
    Svg b"svg" None unseen,
    Table b"table" Paragraph container,
    Tbody b"tbody" Line container,
    Td b"td" Tab container,
    Template b"template" None unseen container,
    Textarea b"textarea" Line keeps_lines,
    Tfoot b"tfoot" Line container,
    Th b"th" Tab container,
    Thead b"thead" Line container,
    Title b"title" None,
    Tr b"tr" Line container,
    Track b"track" None void,
    Ul b"ul" Line container,
    Video b"video" None unseen,
    Wbr b"wbr" None void,
    Xmp b"xmp" Paragraph keeps_lines,
}
