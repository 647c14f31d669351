package podconfig

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestEnvFileValue(t *testing.T) {
	for name, c := range map[string]struct{ text, want, wrong string }{
		"one line":               {text: "K='v'", want: "v"},
		"the second":             {text: "A='1'\nK='v'\n", want: "v"},
		"the first of two":       {text: "K='1'\nK='2'\n", want: "1"},
		"comments and blanks":    {text: "# K='no'\n\n \t\n  K='v' # yes\n", want: "v"},
		"several lines":          {text: "A='x\ny'\nK='1\n2'\n", want: "1\n2"},
		"taken as it is":         {text: `K='a "b" $c \n =d'`, want: `a "b" $c \n =d`},
		"lines of Windows":       {text: "A='1'\r\n\r\nK='v'\r\n", want: "v"},
		"not there":              {text: "A='1'\n", want: ""},
		"blank before the quote": {text: "K= 'v'\n", want: ""},
		"another with a blank":   {text: "A= 'x\nK='v'\n", want: "v"},
		"no equals sign":         {text: "A='1'\nexport\n", wrong: "line 2: missing '='"},
		"no name":                {text: "='1'", wrong: "line 1: empty variable name"},
		"blank before equals":    {text: "A ='1'", wrong: "line 1: whitespace before '=' is not allowed"},
		"no quotes":              {text: "A=1", wrong: "line 1: value must be enclosed in single quotes"},
		"never closed":           {text: "A='x\ny'\nB='1\n2\n", wrong: "line 3: unclosed single quote"},
		"more after the quote":   {text: "A='1' B='2'", wrong: "line 1: unexpected content after closing quote"},
		"wrong after the key":    {text: "K='v'\nrubbish", want: "v"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := envFileValue(c.text, "K")
			if got != c.want || (err == nil) != (c.wrong == "") || err != nil && err.Error() != c.wrong {
				t.Errorf("%q, %v; want %q, %s", got, err, c.want, c.wrong)
			}
		})
	}
}

// FuzzEnvFile: whatever a container writes, the answer is a part of it or an error.
func FuzzEnvFile(f *testing.F) {
	f.Add("A='x\ny'\nK='v' # c\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		value, err := envFileValue(text, "K")
		if err != nil && value != "" || !strings.Contains(strings.ReplaceAll(text, "\r\n", "\n"), value) {
			t.Errorf("%q, %v", value, err)
		}
	})
}

func TestFileKeys(t *testing.T) {
	for name, c := range map[string]struct {
		file     error
		key      string
		optional bool
		want     string // the value, or ""
		wrong    string
	}{
		"there":                  {key: "K", want: "v"},
		"no such key":            {key: "X", wrong: `environment variable key "X" not found in file "f"`},
		"no such optional key":   {key: "X", optional: true},
		"no such file":           {key: "K", file: fs.ErrNotExist, wrong: `couldn't read env file "f" of volume "v": file does not exist`},
		"no such optional file":  {key: "K", file: fs.ErrNotExist, optional: true},
		"an optional file fails": {key: "K", file: errors.New("too large"), optional: true, wrong: `couldn't read env file "f" of volume "v": too large`},
	} {
		t.Run(name, func(t *testing.T) {
			in := envInput()
			in.File = func(volume, path string) ([]byte, error) { return []byte("K='v'\n"), c.file }
			ref := &corev1.FileKeySelector{VolumeName: "v", Path: "f", Key: c.key, Optional: &c.optional}
			got, err := envOf(t, in, &corev1.Container{Env: []corev1.EnvVar{{Name: "V", ValueFrom: &corev1.EnvVarSource{FileKeyRef: ref}}}})
			if got["V"] != c.want || (err == nil) != (c.wrong == "") || err != nil && err.Error() != c.wrong {
				t.Errorf("%q, %v; want %q, %s", got["V"], err, c.want, c.wrong)
			}
			if _, set := got["V"]; err == nil && set != (c.want != "") {
				t.Errorf("set: %v", set)
			}
		})
	}
}
