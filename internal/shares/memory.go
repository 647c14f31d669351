package shares

import "github.com/KimMachineGun/automemlimit/memlimit"

// OfMemory is how many of something there can be that takes so many bytes each: so many, but together no more than one in part of the
// memory of the machine, or of this process's control group if that allows less, and at least 2.
func OfMemory(most, bytesEach, part int) int {
	return ofMemory(most, bytesEach, part, memlimit.FromCgroup, memlimit.FromSystem)
}

// ofMemory takes the least that is known.
func ofMemory(most, bytesEach, part int, limits ...memlimit.Provider) int {
	for _, limit := range limits {
		if bytes, err := limit(); err == nil {
			most = int(min(uint64(most), max(2, bytes/uint64(part)/uint64(bytesEach))))
		}
	}
	return most
}
