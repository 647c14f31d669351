package vm

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// A Verdict is what the output of a test binary (-test.v) says, and how the binary ended.
type Verdict struct {
	Passed, Failed, Skipped int      // tests, without subtests
	Failures                []string // names, with subtests
	Err                     error    // of the process
}

// OK says that tests ran and that all of them passed. A binary that skipped every test has shown nothing.
func (v Verdict) OK() bool { return v.Err == nil && v.Failed == 0 && v.Passed > 0 }

func (v Verdict) String() string {
	text := fmt.Sprintf("%d passed, %d failed, %d skipped", v.Passed, v.Failed, v.Skipped)
	switch {
	case v.Err != nil:
		text += fmt.Sprintf(" (%v)", v.Err)
	case v.Passed+v.Failed == 0:
		text += " (no test ran)"
	}
	if len(v.Failures) > 0 {
		text += ": " + strings.Join(v.Failures, " ")
	}
	return text
}

// lineLimit bounds one line of output.
const lineLimit = 1 << 20

// Judge reads the output of a test binary to its end, copying it to log.
func Judge(output io.Reader, log io.Writer) Verdict {
	var v Verdict
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, lineLimit)
	for lines.Scan() {
		fmt.Fprintln(log, lines.Text())
		v.read(lines.Text())
	}
	v.Err = lines.Err()
	_, _ = io.Copy(log, output) // after a line too long: the binary must not wait for a reader
	return v
}

func (v *Verdict) read(line string) {
	word, rest, _ := strings.Cut(strings.TrimLeft(line, " "), ": ")
	name, _, _ := strings.Cut(rest, " ")
	top := strings.HasPrefix(line, "---")
	switch {
	case word == "--- FAIL":
		v.Failures = append(v.Failures, name)
		if top {
			v.Failed++
		}
	case top && word == "--- PASS":
		v.Passed++
	case top && word == "--- SKIP":
		v.Skipped++
	}
}
