package mutants

var ofOwnership = []Mutant{
	{
		Name: "shape-without-map-keys", Bug: "objects with other keys get the fields of the first",
		File:   "apiserver/managedfields/shape.go",
		Old:    "\t\ts.addText(key)\n",
		New:    "",
		Checks: []Check{{"apiserver/managedfields", "Upstreams"}},
	},
	{
		Name: "shape-without-list-keys", Bug: "objects with other list items get the fields of the first",
		File:   "apiserver/managedfields/shape.go",
		Old:    "\t\tif len(n.fields) > 0 {\n",
		New:    "\t\tif len(n.fields) > 99 {\n",
		Checks: []Check{{"apiserver/managedfields", "Upstreams"}},
	},
	{
		Name: "shape-without-zeros", Bug: "who sets a field to what an empty object has owns it",
		File:   "apiserver/managedfields/shape.go",
		Old:    "\tif isZero {\n",
		New:    "\tif false {\n",
		Checks: []Check{{"apiserver/managedfields", "Upstreams"}},
	},
	{
		Name: "owned-by-the-first-manager", Bug: "an update by another manager leaves the fields with the first",
		File:   "apiserver/managedfields/owners.go",
		Old:    "own.Manager != nameOf(manager) || ",
		New:    "",
		Checks: []Check{{"apiserver/managedfields", "Upstreams"}},
	},
	{
		Name: "ownership-never-moves-on", Bug: "an update that changes a value keeps the time of the one before",
		File:   "apiserver/managedfields/owners.go",
		Old:    "\tif !o.root.equal(",
		New:    "\tif false && !o.root.equal(",
		Checks: []Check{{"apiserver/managedfields", "Upstreams"}},
	},
	{
		Name: "shapes-never-forgotten", Bug: "what is remembered of shapes grows without a limit",
		File:   "apiserver/managedfields/owners.go",
		Old:    "o.bytes+size > ShapesBytesMax",
		New:    "o.bytes < 0",
		Checks: []Check{{"apiserver/managedfields", "TestShapesAreBounded"}},
	},
	{
		Name: "plain-create-not-validated", Bug: "validating admission is not asked for plain creates",
		File:   "apiserver/rest/fastcreate.go",
		Old:    "rest.AdmissionToValidateObjectFunc(p.admit, attributes, p.scope), options)",
		New:    "nil, options)",
		Checks: []Check{{"apiserver", "TestPlainWrites"}},
	},
	{
		Name: "plain-update-may-create", Bug: "who may update but not create creates by a plain update",
		File:   "apiserver/rest/fastupdate.go",
		Old:    "case decision == authorizer.DecisionAllow:",
		New:    "case decision >= authorizer.DecisionDeny:",
		Checks: []Check{{"apiserver", "TestPlainWrites"}},
	},
	{
		Name: "unknown-fields-pass", Bug: "a plain write ignores misspelt fields without a warning",
		File:   "apiserver/rest/plain.go",
		Old:    "DecoderToVersion(info.StrictSerializer, gv)",
		New:    "DecoderToVersion(info.Serializer, gv)",
		Checks: []Check{{"apiserver", "TestPlainWrites"}},
	},
}
