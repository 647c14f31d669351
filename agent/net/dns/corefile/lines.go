package corefile

import "strings"

// line is one of the file, in words. opens: its last word was "{"; closes: it was "}".
type line struct {
	number        int
	words         []string
	opens, closes bool
}

// linesOf leaves out comments and empty lines. A "}" behind other words gets a line of its own.
func linesOf(text string) []line {
	var all []line
	number := 0
	for raw := range strings.Lines(text) {
		number++
		l := line{number: number, words: wordsOf(raw)}
		for len(l.words) > 0 {
			if l.words[0] == "}" {
				all = append(all, line{number: number, closes: true})
				l.words = l.words[1:]
				continue
			}
			next := line{number: number}
			for len(l.words) > 0 && l.words[0] != "}" && !next.opens {
				if l.words[0] == "{" {
					next.opens = true
				} else {
					next.words = append(next.words, l.words[0])
				}
				l.words = l.words[1:]
			}
			if len(next.words) == 0 {
				next.words = []string{""}
			}
			all = append(all, next)
		}
	}
	return all
}

// wordsOf takes what stands between quotes as one word.
func wordsOf(text string) []string {
	var words []string
	var word strings.Builder
	quoted, any := false, false
	flush := func() {
		if any {
			words = append(words, word.String())
		}
		word.Reset()
		any = false
	}
	for i, r := range text {
		switch {
		case r == '"' && (i == 0 || text[i-1] != '\\'):
			quoted, any = !quoted, true
		case quoted:
			word.WriteRune(r)
		case r == '#' && !any:
			return words
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			flush()
		default:
			word.WriteRune(r)
			any = true
		}
	}
	flush()
	return words
}
