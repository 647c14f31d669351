package main

import (
	"maps"
	"strings"
	"testing"
)

func TestReadTests(t *testing.T) {
	for name, test := range map[string]struct {
		output string
		want   specs
	}{
		"plain": {
			"=== RUN   TestA\n--- PASS: TestA (0.01s)\n=== RUN   TestB\n--- FAIL: TestB (0.00s)\n=== RUN   TestC\n--- SKIP: TestC (0.00s)\n",
			specs{"TestA": passed, "TestB": failed, "TestC": skipped},
		},
		"subtests count in place of their parent": {
			"=== RUN   TestA\n=== RUN   TestA/x\n=== RUN   TestA/x/y\n--- FAIL: TestA (0.01s)\n    --- FAIL: TestA/x (0.01s)\n        --- FAIL: TestA/x/y (0.00s)\n",
			specs{"TestA/x/y": failed},
		},
		"a parent that fails by itself": {
			"=== RUN   TestA\n=== RUN   TestA/x\n--- FAIL: TestA (0.01s)\n    --- PASS: TestA/x (0.01s)\n",
			specs{"TestA": failed, "TestA/x": passed},
		},
		"a test that does not end": {"=== RUN   TestA\npanic: no\n", specs{"TestA": failed}},
		"Ginkgo's runner is none":  {"=== RUN   TestA\nRunning Suite: A - /x\n--- PASS: TestA (0.01s)\n", specs{}},
		"half a line before": {
			"=== RUN   TestA\nhalf--- PASS: TestA (0.01s)\nhalf=== RUN   TestB\n",
			specs{"TestA": passed, "TestB": failed},
		},
		"nothing": {"", specs{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := specs{}
			if err := got.readTests(strings.NewReader(marked.Replace(test.output))); err != nil || !maps.Equal(got, test.want) {
				t.Errorf("%v, %v; want %v", got, err, test.want)
			}
		})
	}
}

// marked puts the byte where a test program puts it.
var marked = strings.NewReplacer("=== RUN", "\x16=== RUN", "--- ", "\x16--- ")

// TestWhatATestPrintsIsNoReport: one that shows the output of another.
func TestWhatATestPrintsIsNoReport(t *testing.T) {
	got := specs{}
	output := "\x16=== RUN   TestA\n=== RUN   TestOther\n--- FAIL: TestOther (0.00s)\n\x16--- PASS: TestA (0.00s)\n"
	if err := got.readTests(strings.NewReader(output)); err != nil || !maps.Equal(got, specs{"TestA": passed}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestReadGinkgo(t *testing.T) {
	got := specs{}
	err := got.readGinkgo([]byte(`[{"SpecReports": [
		{"ContainerHierarchyTexts": ["a", "b"], "LeafNodeType": "It", "LeafNodeText": "works", "State": "passed"},
		{"ContainerHierarchyTexts": ["a", "b"], "LeafNodeType": "It", "LeafNodeText": "works", "State": "timedout"},
		{"LeafNodeType": "It", "LeafNodeText": "later", "State": "pending"},
		{"LeafNodeType": "BeforeSuite", "State": "passed"},
		{"LeafNodeType": "AfterSuite", "State": "panicked"}]}]`))
	want := specs{"a b works": failed, "later": skipped, "AfterSuite": failed}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if err := got.readGinkgo([]byte("{")); err == nil {
		t.Error("half a report is read")
	}
}
