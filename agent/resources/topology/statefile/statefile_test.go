package statefile

import (
	"errors"
	"strings"
	"testing"
)

type content struct {
	PolicyName string `json:"policyName"`
	Size       uint64 `json:"size"`
}

func TestWhatWasWrittenIsRead(t *testing.T) {
	file, err := Encode(content{"static", 1<<63 + 1})
	if err != nil {
		t.Fatal(err)
	}
	var got content
	if err := Decode(file, &got); err != nil || got != (content{"static", 1<<63 + 1}) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, bad := range map[string]string{
		"empty":   "",
		"cut":     string(file[:len(file)/2]),
		"changed": strings.Replace(string(file), `\"static\"`, `\"none\"`, 1),
		"older":   `{"policyName":"static","defaultCpuSet":"0-3","checksum":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := Decode([]byte(bad), &got); !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
		})
	}
}
