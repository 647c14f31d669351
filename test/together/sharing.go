package main

import "slices"

// sharing finds the packages whose tests can be linked with others. Test files of a package that become its own must not close a
// circle of imports: those that would are left out until there is none.
func sharing(module, candidates []*listed) ([]*listed, error) {
	var share []*listed
	for _, p := range candidates {
		may, err := p.mayShare()
		if err != nil {
			return nil, err
		}
		if may {
			share = append(share, p)
		}
	}
	imports := map[string][]string{}
	for _, p := range module {
		imports[p.ImportPath] = p.Imports
	}
	return slices.DeleteFunc(share, func(p *listed) bool {
		before := imports[p.ImportPath]
		imports[p.ImportPath] = slices.Concat(before, p.TestImports)
		if !reaches(imports, p.TestImports, p.ImportPath) {
			return false
		}
		imports[p.ImportPath] = before
		return true
	}), nil
}

// reaches reports whether one of the packages imports another, directly or not.
func reaches(imports map[string][]string, from []string, to string) bool {
	seen := map[string]bool{}
	for queue := slices.Clone(from); len(queue) > 0; {
		next := queue[0]
		queue = queue[1:]
		if next == to {
			return true
		}
		if !seen[next] {
			seen[next] = true
			queue = append(queue, imports[next]...)
		}
	}
	return false
}
