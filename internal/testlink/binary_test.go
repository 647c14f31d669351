package testlink

import "testing"

func TestLastSentence(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"first\nlast\n":                      "last",
		"first\nlast\n \t\n\r\n":             "last",
		"first\nit is wrong:\n\tgo  get a\n": "it is wrong: go get a",
	} {
		if said := lastSentence(text); said != want {
			t.Errorf("of %q the last sentence is %q, want %q", text, said, want)
		}
	}
}
