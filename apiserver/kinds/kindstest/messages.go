package kindstest

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Messages are the errors as clients see them, sorted, without the long
// explanations of what a name must look like.
func Messages(errs field.ErrorList) []string {
	var lines []string
	for _, err := range errs {
		line, _, _ := strings.Cut(err.Error(), "\n")
		if n := strings.Index(line, " must consist of"); n > 0 {
			line = line[:n]
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}
