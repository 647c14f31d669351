package mutants

import "slices"

// Mutant is one bug of the store: a text of one file, replaced by another.
type Mutant struct {
	// Name is a few words with dashes, unique in All.
	Name string
	// Bug says in one line what is broken.
	Bug string
	// File is the path below the module. Old occurs in it exactly once.
	File, Old, New string
	// Checks are run in order, cheap ones first, until one fails.
	Checks []Check
}

// Check is some tests of one package.
type Check struct {
	// Package is the directory below the module, Run the pattern for go test -run.
	Package, Run string
}

// All returns every mutant of the store.
func All() []Mutant {
	return slices.Concat(ofState, ofSnapshot, ofWatch, ofReplication, ofDisk, ofLives, ofPutBack, ofStorage, ofEncryption, ofOwnership,
		ofLoops, ofReplayed)
}

func (m *Mutant) changes() []Change { return []Change{{m.File, m.Old, m.New}} }
