package cpushare

import (
	"os"
	"path"
	"path/filepath"
	"strings"
)

// quota is how many processors the control groups of this process let it use, the least of all levels; 0: there is no quota. Go's own
// GOMAXPROCS follows it too, but is a whole number, and 2 at least.
func quota(proc, cgroups string) (least float64) {
	text, err := os.ReadFile(filepath.Join(proc, "self/cgroup"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) { // number:controllers:path
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		read := quotaOf(cgroups, controllers)
		for at := path.Clean("/" + group); read != nil; at = path.Dir(at) {
			if q := read(at); q > 0 && (least == 0 || q < least) {
				least = q
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}

// quotaOf is how to read a group's quota in a hierarchy; nil: it has none.
func quotaOf(cgroups, controllers string) func(group string) float64 {
	switch {
	case controllers == "": // the second version
		return func(group string) float64 {
			quota, period, _ := strings.Cut(string(readInto(make([]byte, 64), filepath.Join(cgroups, group, "cpu.max"))), " ")
			return ratio(quota, period)
		}
	case strings.Contains(","+controllers+",", ",cpu,"):
		return func(group string) float64 {
			read := func(file string) string {
				return string(readInto(make([]byte, 64), filepath.Join(cgroups, "cpu", group, file)))
			}
			return ratio(read("cpu.cfs_quota_us"), read("cpu.cfs_period_us"))
		}
	}
	return nil
}

// ratio is 0 for max and -1, which are no quota.
func ratio(quota, period string) float64 {
	q, p := number([]byte(strings.TrimSpace(quota))), number([]byte(strings.TrimSpace(period)))
	if q <= 0 || p <= 0 {
		return 0
	}
	return float64(q) / float64(p)
}
