package job

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// span is a run of completion indexes, both ends included.
type span struct{ first, last int }

// indexes is a set of completion indexes: spans in ascending order with gaps between them. A Job
// of a million indexes that completes in order is one span.
type indexes []span

// parseIndexes reads what String wrote, as far as it is below completions. What cannot be read is
// left out: the status may have been written by others.
func parseIndexes(text string, completions int) indexes {
	var spans indexes
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil || first < 0 || first >= completions {
			continue
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		spans = append(spans, span{first, min(last, completions-1)})
	}
	return normal(spans)
}

// indexesOf is the set of single indexes.
func indexesOf(set map[int]bool) indexes {
	var spans indexes
	for index := range set {
		spans = append(spans, span{index, index})
	}
	return normal(spans)
}

// normal sorts spans and joins those that touch.
func normal(spans indexes) indexes {
	slices.SortFunc(spans, func(a, b span) int { return a.first - b.first })
	var out indexes
	for _, s := range spans {
		if s.last < s.first {
			continue
		}
		if n := len(out); n > 0 && s.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, s.last)
			continue
		}
		out = append(out, s)
	}
	return out
}

// union is the set of what is in any of the sets.
func union(sets ...indexes) indexes { return normal(slices.Concat(sets...)) }

// total is how many indexes there are.
func (s indexes) total() int {
	n := 0
	for _, part := range s {
		n += part.last - part.first + 1
	}
	return n
}

func (s indexes) has(index int) bool {
	i, exact := slices.BinarySearchFunc(s, index, func(part span, index int) int { return part.first - index })
	return exact || i > 0 && s[i-1].last >= index
}

// common is how many indexes are in both sets.
func (s indexes) common(other indexes) int {
	n := 0
	for i, j := 0, 0; i < len(s) && j < len(other); {
		n += max(0, min(s[i].last, other[j].last)-max(s[i].first, other[j].first)+1)
		if s[i].last < other[j].last {
			i++
		} else {
			j++
		}
	}
	return n
}

// missing yields the indexes below completions that are not in the set, in ascending order.
func (s indexes) missing(completions int) iter.Seq[int] {
	return func(yield func(int) bool) {
		next := 0
		for _, part := range append(slices.Clip(s), span{completions, completions}) {
			for ; next < min(part.first, completions); next++ {
				if !yield(next) {
					return
				}
			}
			next = max(next, part.last+1)
		}
	}
}

// String is the form of the status: "1,3-5,7".
func (s indexes) String() string {
	var parts []string
	for _, part := range s {
		first, last := strconv.Itoa(part.first), strconv.Itoa(part.last)
		switch part.last - part.first {
		case 0:
			parts = append(parts, first)
		case 1:
			parts = append(parts, first, last)
		default:
			parts = append(parts, first+"-"+last)
		}
	}
	return strings.Join(parts, ",")
}

// noIndex is the index of a pod without one.
const noIndex = -1

// indexOf is the pod's completion index, or noIndex.
func indexOf(pod *corev1.Pod) int {
	index, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil || index < 0 {
		return noIndex
	}
	return index
}

// indexesOfPods is the set of the indexes of pods.
func indexesOfPods(pods []*corev1.Pod) indexes {
	set := map[int]bool{}
	for _, pod := range pods {
		if index := indexOf(pod); index != noIndex {
			set[index] = true
		}
	}
	return indexesOf(set)
}

// byIndex groups pods, in ascending order of indexes.
func byIndex(pods []*corev1.Pod) iter.Seq2[int, []*corev1.Pod] {
	groups := map[int][]*corev1.Pod{}
	for _, pod := range pods {
		groups[indexOf(pod)] = append(groups[indexOf(pod)], pod)
	}
	return func(yield func(int, []*corev1.Pod) bool) {
		for _, index := range slices.Sorted(maps.Keys(groups)) {
			if !yield(index, groups[index]) {
				return
			}
		}
	}
}
