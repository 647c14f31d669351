package web

import "embed"

// BytesMax is how large all files may be together.
const BytesMax = 300 << 10

// Files are those of the page; index.html is the first.
//
//go:embed *.html *.css *.js *.svg
var Files embed.FS
