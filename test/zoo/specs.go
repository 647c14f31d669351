package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
)

// state is how a spec ended.
type state int

const (
	failed state = iota // or did not end
	skipped
	passed
)

// specs are the tests of a package, Ginkgo's and plain ones, by name. Of two of one name the worse counts.
type specs map[string]state

func (s specs) add(name string, ended state) {
	if before, known := s[name]; !known || ended < before {
		s[name] = ended
	}
}

func (s specs) failed() (n int) {
	for _, ended := range s {
		if ended == failed {
			n++
		}
	}
	return n
}

var (
	begunLine = regexp.MustCompile(`\x16=== RUN   (\S+)`)
	endedLine = regexp.MustCompile(`\x16\s*--- (PASS|FAIL|SKIP): (\S+) \(`)
	states    = map[string]state{"PASS": passed, "FAIL": failed, "SKIP": skipped}
)

const (
	ginkgoBegins = "Running Suite:" // what Ginkgo prints within the test that runs its specs
	lineBytesMax = 1 << 20          // of a longer line the rest is read as another line
)

// markedLines is the flag that makes a test program put a byte 0x16 before what it reports. A test may have printed half a line
// just before.
const markedLines = "-test.v=test2json"

// readTests reads what a test program prints with markedLines. A test that begins and does not end has failed. Of a test with
// subtests these count; it counts too if it failed by itself.
func (s specs) readTests(output io.Reader) error {
	lines := bufio.NewReaderSize(output, lineBytesMax)
	running, runners, found := "", map[string]bool{}, map[string]state{}
	for {
		text, _, err := lines.ReadLine()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		line := string(text)
		if begun := begunLine.FindStringSubmatch(line); begun != nil {
			running = begun[1]
			found[running] = failed
		} else if ended := endedLine.FindStringSubmatch(line); ended != nil {
			found[ended[2]] = states[ended[1]]
		} else if strings.HasPrefix(line, ginkgoBegins) {
			runners[running] = true
		}
	}
	s.addTests(found, runners)
	return nil
}

func (s specs) addTests(found map[string]state, runners map[string]bool) {
	worst := map[string]state{}
	for name, ended := range found {
		for at := strings.LastIndex(name, "/"); at > 0; at = strings.LastIndex(name[:at], "/") {
			before, known := worst[name[:at]]
			if !known || ended < before {
				worst[name[:at]] = ended
			}
		}
	}
	for name, ended := range found {
		below, parent := worst[name]
		byItself := ended == failed && below != failed
		if !runners[name] && (!parent || byItself) {
			s.add(name, ended)
		}
	}
}

// readGinkgo reads Ginkgo's JSON report. What is no spec, such as BeforeSuite, counts if it failed.
func (s specs) readGinkgo(report []byte) error {
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts           []string
			LeafNodeType, LeafNodeText, State string
		}
	}
	if err := json.Unmarshal(report, &suites); err != nil {
		return err
	}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			name := strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " ")
			ended := ginkgoState(spec.State)
			if spec.LeafNodeType != "It" {
				name = strings.TrimSpace(spec.LeafNodeType + " " + name)
			}
			if spec.LeafNodeType == "It" || ended == failed {
				s.add(name, ended)
			}
		}
	}
	return nil
}

func ginkgoState(word string) state {
	switch word {
	case "passed":
		return passed
	case "pending", "skipped":
		return skipped
	}
	return failed
}
