package lists

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"testing"

	"golang.org/x/tools/go/packages"
)

// flow is what may get into variables, fields, parameters and results of the product, wherever that is written down: by an assignment,
// a literal, a call, or a case that it is told apart by. What comes through interfaces and channels is not followed.
type flow struct {
	into map[types.Object][]value
	// results are the values that a function returns, by their place.
	results map[types.Object]map[int][]value
	// indirect are the calls of what a variable has.
	indirect []value
}

// value is an expression with what the type checker knows of its package.
type value struct {
	expr ast.Expr
	info *types.Info
	// result is which of a call's.
	result int
}

// newFlow reads packages of the product.
func newFlow(t *testing.T, dir string, patterns ...string) (*flow, []*packages.Package) {
	t.Helper()
	all, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: dir}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	f := &flow{into: map[types.Object][]value{}, results: map[types.Object]map[int][]value{}}
	for _, p := range all {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool { f.note(n, p.TypesInfo); return true })
		}
	}
	for _, v := range f.indirect {
		call := v.expr.(*ast.CallExpr)
		for _, to := range f.functions(value{call.Fun, v.info, 0}, map[types.Object]bool{}) {
			f.hand(call.Args, to, v.info)
		}
	}
	return f, all
}

// note takes down what a node of a file moves.
func (f *flow) note(n ast.Node, info *types.Info) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, name := range n.Names {
			f.assign(info.Defs[name], n.Values, i, info)
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			f.assign(objectOf(to, info), n.Rhs, i, info)
		}
	case *ast.RangeStmt:
		if n.Value != nil {
			f.add(objectOf(n.Value, info), value{n.X, info, 0})
		}
	case *ast.SwitchStmt:
		f.noteCases(n, info)
	case *ast.CompositeLit:
		f.noteLiteral(n, info)
	case *ast.CallExpr:
		f.noteCall(n, info)
	case *ast.FuncDecl:
		f.noteReturns(info.Defs[n.Name], n.Body, info)
	}
}

func (f *flow) assign(to types.Object, from []ast.Expr, i int, info *types.Info) {
	switch {
	case len(from) == 1:
		f.add(to, value{from[0], info, i})
	case i < len(from):
		f.add(to, value{from[i], info, 0})
	}
}

func (f *flow) add(to types.Object, v value) {
	if to != nil {
		f.into[origin(to)] = append(f.into[origin(to)], v)
	}
}

// noteCases: what comes from outside may be what the product tells it apart by.
func (f *flow) noteCases(n *ast.SwitchStmt, info *types.Info) {
	if n.Tag == nil {
		return
	}
	for _, clause := range n.Body.List {
		for _, e := range clause.(*ast.CaseClause).List {
			f.add(objectOf(n.Tag, info), value{e, info, 0})
		}
	}
}

// noteLiteral fills fields. What is in a list or a table is found by resolving the literal itself.
func (f *flow) noteLiteral(n *ast.CompositeLit, info *types.Info) {
	structure, ok := info.TypeOf(n).Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, element := range n.Elts {
		if pair, keyed := element.(*ast.KeyValueExpr); keyed {
			f.add(objectOf(pair.Key, info), value{pair.Value, info, 0})
		} else {
			f.add(structure.Field(i), value{element, info, 0})
		}
	}
}

// noteCall hands arguments to the parameters of a function. Which functions a variable has is known later.
func (f *flow) noteCall(n *ast.CallExpr, info *types.Info) {
	called := objectOf(n.Fun, info)
	if function, ok := called.(*types.Func); ok {
		f.hand(n.Args, function.Origin().Signature(), info)
	} else if called != nil {
		f.indirect = append(f.indirect, value{n, info, 0})
	}
}

func (f *flow) hand(args []ast.Expr, to *types.Signature, info *types.Info) {
	for i, arg := range args {
		if i < to.Params().Len() {
			f.add(to.Params().At(i), value{arg, info, 0})
		}
	}
}

// functions are those that a value may be.
func (f *flow) functions(v value, seen map[types.Object]bool) (found []*types.Signature) {
	var from []value
	switch e := ast.Unparen(v.expr).(type) {
	case *ast.FuncLit:
		return []*types.Signature{v.info.TypeOf(e).(*types.Signature)}
	case *ast.CallExpr:
		if o := origin(objectOf(e.Fun, v.info)); o != nil {
			from = f.results[o][v.result]
		}
	default:
		o := origin(objectOf(e, v.info))
		if function, ok := o.(*types.Func); ok {
			return []*types.Signature{function.Signature()}
		}
		if o == nil || seen[o] {
			return nil
		}
		seen[o] = true
		from = f.into[o]
	}
	for _, next := range from {
		found = append(found, f.functions(next, seen)...)
	}
	return found
}

func (f *flow) noteReturns(function types.Object, body *ast.BlockStmt, info *types.Info) {
	if body == nil || function == nil {
		return
	}
	results := map[int][]value{}
	ast.Inspect(body, func(n ast.Node) bool {
		if _, inner := n.(*ast.FuncLit); inner {
			return false
		}
		if r, ok := n.(*ast.ReturnStmt); ok {
			for i, e := range r.Results {
				results[i] = append(results[i], value{e, info, 0})
			}
		}
		return true
	})
	signature := function.Type().(*types.Signature)
	for i := range signature.Results().Len() {
		results[i] = append(results[i], f.into[signature.Results().At(i)]...) // named ones
	}
	f.results[function] = results
}

// objectOf is what an expression names; nil if it is more than a name.
func objectOf(e ast.Expr, info *types.Info) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return info.ObjectOf(e)
	case *ast.SelectorExpr:
		return info.ObjectOf(e.Sel)
	case *ast.IndexExpr: // an instance of a generic function, or an element
		return objectOf(e.X, info)
	}
	return nil
}

func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Var:
		return o.Origin()
	case *types.Func:
		return o.Origin()
	}
	return o
}

// texts are what a value may say, as far as it is written down somewhere. seen are the objects that are being looked at.
func (f *flow) texts(v value, seen map[types.Object]bool) (found []string) {
	if known := v.info.Types[v.expr].Value; known != nil {
		if known.Kind() == constant.String {
			return []string{constant.StringVal(known)}
		}
		return nil
	}
	switch e := ast.Unparen(v.expr).(type) {
	case *ast.BinaryExpr:
		return f.joined(e, v.info, seen)
	case *ast.CompositeLit: // a list or a table: any of it
		for _, element := range e.Elts {
			if pair, keyed := element.(*ast.KeyValueExpr); keyed {
				element = pair.Value
			}
			found = append(found, f.texts(value{element, v.info, 0}, seen)...)
		}
		return found
	case *ast.CallExpr:
		return f.returned(e, v, seen)
	}
	return f.textsIn(objectOf(v.expr, v.info), seen)
}

func (f *flow) textsIn(o types.Object, seen map[types.Object]bool) (found []string) {
	if o = origin(o); o == nil || seen[o] {
		return nil
	}
	seen[o] = true
	defer delete(seen, o)
	for _, v := range f.into[o] {
		found = append(found, f.texts(v, seen)...)
	}
	return found
}

// joined are all texts of two parts.
func (f *flow) joined(e *ast.BinaryExpr, info *types.Info, seen map[types.Object]bool) (found []string) {
	if e.Op != token.ADD {
		return nil
	}
	ends := f.texts(value{e.Y, info, 0}, seen)
	for _, begin := range f.texts(value{e.X, info, 0}, seen) {
		for _, end := range ends {
			found = append(found, begin+end)
		}
	}
	return found
}

// returned are the results of a call, or what a conversion converts.
func (f *flow) returned(e *ast.CallExpr, v value, seen map[types.Object]bool) (found []string) {
	if v.info.Types[e.Fun].IsType() {
		return f.texts(value{e.Args[0], v.info, 0}, seen)
	}
	o := origin(objectOf(e.Fun, v.info))
	if o == nil || seen[o] {
		return nil
	}
	seen[o] = true
	defer delete(seen, o)
	for _, r := range f.results[o][v.result] {
		found = append(found, f.texts(r, seen)...)
	}
	return found
}
