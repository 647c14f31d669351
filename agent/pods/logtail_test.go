package pods

import "testing"

func TestLastLogLines(t *testing.T) {
	for _, c := range []struct{ name, log, want string }{
		{"lines", "t1 stdout F one\nt2 stderr F two words\n", "one\ntwo words\n"},
		{"a line that nobody ended", "t1 stdout F one\nt2 stdout P DONE\n", "one\nDONE"},
		{"a line in pieces", "t1 stdout P on\nt2 stdout F e\n", "one\n"},
		{"cut off at the front", "out F\nt2 stdout F two\n", "two\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := lastLogLines([]byte(c.log)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
