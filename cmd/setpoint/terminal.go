package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
	"k8s.io/cli-runtime/pkg/printers"
)

// What a terminal draws differently, until plain.
const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	green  = "\x1b[32m"
	bold   = "\x1b[1m"
	plain  = "\x1b[0m"
)

// isTerminal reports whether somebody looks at w.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// wantsColor reports whether somebody looks at w and likes colours (https://no-color.org).
func wantsColor(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

// paint is text in a colour, if w wants colours.
func paint(w io.Writer, color, text string) string {
	if !wantsColor(w) {
		return text
	}
	return color + text + plain
}

// escaped writes text without what would move or colour a terminal: objects say what their users want them to say.
type escaped struct{ to io.Writer }

// Write implements io.Writer.
func (e escaped) Write(text []byte) (int, error) {
	return len(text), printers.WriteEscaped(e.to, string(text))
}

// columns is the width of a terminal; 0: unknown, or w is none.
func columns(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
