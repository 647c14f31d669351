package wireguardkey

import "testing"

const key = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s="

func TestTold(t *testing.T) {
	for annotation, want := range map[string]string{
		"":                                 "",
		"auto":                             "",
		`{"mode":"auto"}`:                  "",
		`{"wireGuardKey":""}`:              "",
		`{"wireGuardKey":"` + key + `"}`:   key,
		`{"wireguardkey":"` + key + `"}`:   key,
		`{"wireGuardKey":"\n` + key + `"}`: key,
		`{"wireGuardKey":"q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6t="}`: key,
		`{"wireGuardKey":"c2hvcnQ="}`:                                     "",
		`{"wireGuardKey":"?"}`:                                            "",
	} {
		if got := Told(map[string]string{Annotation: annotation}); got != want {
			t.Errorf("%s: %q, want %q", annotation, got, want)
		}
	}
}
