package house

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// worlds are the folders that stand as one each in the house; of the others each package is a room.
var worlds = []string{"raftstore", "apiserver", "controllers", "agent", "cmd", "internal", "test"}

// TestHouseFloors: among the rooms of product code no import leads back up, so each stands on a floor
// above all that it imports. With -v it tells how many rooms, floors and imports between rooms there are.
func TestHouseFloors(t *testing.T) {
	below := map[string]map[string]bool{}
	arrows := 0
	eachSource(t, func(f *sourceFile) {
		from := bigRoom(f.dir)
		if f.test || from == "test" {
			return
		}
		if below[from] == nil {
			below[from] = map[string]bool{}
		}
		for _, imported := range f.imports {
			other, ours := packageOfModule(imported)
			if to := bigRoom(other); ours && to != from && !below[from][to] {
				below[from][to] = true
				arrows++
			}
		}
	})
	floors := map[string]int{}
	for len(floors) < len(below) {
		var placed []string
		for room, under := range below {
			if _, done := floors[room]; !done && placedAll(under, floors) {
				placed = append(placed, room)
			}
		}
		if len(placed) == 0 {
			t.Fatalf("among these rooms an import leads back up: %v", unplaced(below, floors))
		}
		floor := 1
		if len(floors) > 0 {
			floor = slices.Max(slices.Collect(maps.Values(floors))) + 1
		}
		for _, room := range placed {
			floors[room] = floor
		}
	}
	t.Logf("%d rooms on %d floors, %d imports between rooms, none back up: %v", len(floors), slices.Max(slices.Collect(maps.Values(floors))), arrows, floors)
}

// bigRoom is the world of a package, or the package itself where no world stands. What makes a machine a
// node is above the worlds that agent stands among.
func bigRoom(dir string) string {
	if dir == "agent/host" {
		return dir
	}
	if top, _, _ := strings.Cut(dir, "/"); slices.Contains(worlds, top) {
		return top
	}
	return dir
}

func placedAll(rooms map[string]bool, floors map[string]int) bool {
	for room := range rooms {
		if _, placed := floors[room]; !placed {
			return false
		}
	}
	return true
}

func unplaced(rooms map[string]map[string]bool, floors map[string]int) (left []string) {
	for room := range rooms {
		if _, placed := floors[room]; !placed {
			left = append(left, room)
		}
	}
	slices.Sort(left)
	return left
}
