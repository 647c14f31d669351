package main

import (
	"bytes"
	"go/ast"
	"go/token"
	"go/types"
	"math/big"
	"slices"
	"strings"
)

// Points are all mutants of a package, in the order of its text. Not all of them compile.
func (p *Package) Points() (all []*Mutant) {
	for _, f := range p.Files {
		for _, d := range f.Syntax.Decls {
			all = append(all, pointsIn(p, f, d)...)
		}
	}
	order(all)
	return all
}

func pointsIn(p *Package, f *File, d ast.Decl) []*Mutant {
	switch d := d.(type) {
	case *ast.FuncDecl:
		w := &finder{p: p, f: f, function: functionName(d)}
		ast.Inspect(d, w.visit)
		return w.found
	case *ast.GenDecl:
		w := &finder{p: p, f: f}
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				w.function = v.Names[0].Name
				ast.Inspect(v, w.visit)
			}
		}
		return w.found
	}
	return nil
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + d.Name.Name
	}
	return d.Name.Name
}

// finder collects the mutants of one declaration.
type finder struct {
	p        *Package
	f        *File
	function string
	found    []*Mutant
}

func (w *finder) visit(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.CallExpr:
		return !w.isText(n)
	case *ast.BinaryExpr:
		w.operator(n)
	case *ast.IfStmt:
		w.negate(n.Cond)
	case *ast.BasicLit:
		w.number(n)
	case *ast.Ident:
		w.truth(n)
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !w.isLock(call) && !w.isText(call) {
			w.remove(n)
		}
	case *ast.DeferStmt:
		if !w.isLock(n.Call) {
			w.remove(n)
		}
	case *ast.ReturnStmt:
		w.hideError(n)
	case *ast.AssignStmt:
		w.assignment(n)
	case *ast.IncDecStmt:
		if w.isField(n.X) {
			w.remove(n)
		}
	}
	return true
}

// others are what an operator becomes: its bound moved by one, and its contrary; of those for two truths the other.
func others(op token.Token) []string {
	switch op {
	case token.EQL:
		return []string{"!="}
	case token.NEQ:
		return []string{"=="}
	case token.LSS:
		return []string{"<=", ">="}
	case token.LEQ:
		return []string{"<", ">"}
	case token.GTR:
		return []string{">=", "<="}
	case token.GEQ:
		return []string{">", "<"}
	case token.LAND:
		return []string{"||"}
	case token.LOR:
		return []string{"&&"}
	case token.ADD, token.ADD_ASSIGN:
		return []string{strings.Replace(op.String(), "+", "-", 1)}
	case token.SUB, token.SUB_ASSIGN:
		return []string{strings.Replace(op.String(), "-", "+", 1)}
	}
	return nil
}

func (w *finder) operator(b *ast.BinaryExpr) {
	if b.Op == token.ADD && !w.isNumber(b.X) {
		return
	}
	for _, other := range others(b.Op) {
		w.replace(b, b.OpPos, b.OpPos+token.Pos(len(b.Op.String())), other)
	}
}

// negate leaves comparisons alone, whose operators change anyway.
func (w *finder) negate(condition ast.Expr) {
	if b, ok := condition.(*ast.BinaryExpr); ok && b.Op != token.LAND && b.Op != token.LOR {
		return
	}
	if not, ok := condition.(*ast.UnaryExpr); ok && not.Op == token.NOT {
		w.replace(condition, not.OpPos, not.X.Pos(), "")
		return
	}
	w.replace(condition, condition.Pos(), condition.End(), "!("+string(w.text(condition.Pos(), condition.End()))+")")
}

// number moves an integer by one. Modes of files are as they are: tests run as root.
func (w *finder) number(l *ast.BasicLit) {
	n, ok := new(big.Int).SetString(l.Value, 0)
	if l.Kind != token.INT || !ok || strings.HasPrefix(l.Value, "0o") {
		return
	}
	now := n.Add(n, big.NewInt(1)).String()
	if l.Value == "1" {
		now = "0"
	}
	w.replaceInLine(l, now)
}

func (w *finder) truth(i *ast.Ident) {
	if other := map[string]string{"true": "false", "false": "true"}[i.Name]; other != "" && w.p.Types.Uses[i] == types.Universe.Lookup(i.Name) {
		w.replaceInLine(i, other)
	}
}

// hideError returns nil where an error is returned by itself: one of a call that returns more is not.
func (w *finder) hideError(r *ast.ReturnStmt) {
	if len(r.Results) == 0 {
		return
	}
	last := r.Results[len(r.Results)-1]
	if t := w.p.Types.Types[last]; !t.IsNil() && t.Type != nil && types.Implements(t.Type, errorType()) {
		w.replace(r, last.Pos(), last.End(), "nil")
	}
}

func errorType() *types.Interface {
	return types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
}

func (w *finder) assignment(a *ast.AssignStmt) {
	if a.Tok == token.SUB_ASSIGN || a.Tok == token.ADD_ASSIGN && w.isNumber(a.Lhs[0]) {
		w.replace(a, a.TokPos, a.TokPos+2, others(a.Tok)[0])
	}
	if len(a.Lhs) == 1 && a.Tok != token.DEFINE && w.isField(a.Lhs[0]) {
		w.remove(a)
	}
}

func (w *finder) isField(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && w.p.Types.Selections[s] != nil && w.p.Types.Selections[s].Kind() == types.FieldVal
}

func (w *finder) isNumber(e ast.Expr) bool {
	t := w.p.Types.Types[e].Type
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsNumeric != 0
}

// isLock: without one half of a lock a test hangs or crashes, whatever it looks at; without both only the race detector sees it.
func (w *finder) isLock(call *ast.CallExpr) bool {
	return slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, w.called(call).name)
}

// isText: what is logged, and what an error says, is for people. No test need know each word.
func (w *finder) isText(call *ast.CallExpr) bool {
	c := w.called(call)
	return c.of == "log/slog" || c.of == "fmt" || c.of == "errors" && c.name == "New" || c.of == "" && c.name == "panic"
}

// function is what a call calls: its package, empty for what the language has, and its name.
type function struct{ of, name string }

func (w *finder) called(call *ast.CallExpr) function {
	name, ok := call.Fun.(*ast.Ident)
	if s, selected := call.Fun.(*ast.SelectorExpr); selected {
		name, ok = s.Sel, true
	}
	if !ok {
		return function{of: "?"}
	}
	if object := w.p.Types.Uses[name]; object != nil && object.Pkg() != nil {
		return function{object.Pkg().Path(), name.Name}
	}
	return function{"", name.Name}
}

// replace describes a change by the whole of an expression or statement.
func (w *finder) replace(whole ast.Node, from, to token.Pos, now string) {
	begins, ends := w.text(whole.Pos(), from), w.text(to, whole.End())
	w.add(from, to, now, clip(w.text(whole.Pos(), whole.End()))+" → "+clip(slices.Concat(begins, []byte(now), ends)))
}

// replaceInLine describes it by the line.
func (w *finder) replaceInLine(n ast.Node, now string) {
	start, end := w.offset(n.Pos()), w.offset(n.End())
	line := w.f.Text[bytes.LastIndexByte(w.f.Text[:start], '\n')+1:]
	line, _, _ = bytes.Cut(line, []byte("\n"))
	w.add(n.Pos(), n.End(), now, string(w.f.Text[start:end])+" → "+now+" in "+clip(line))
}

func (w *finder) remove(n ast.Node) {
	w.add(n.Pos(), n.End(), "", "without "+clip(w.text(n.Pos(), n.End())))
}

func (w *finder) add(from, to token.Pos, now, what string) {
	position := w.p.tree.Files.PositionFor(from, false)
	w.found = append(w.found, &Mutant{
		Package: w.p, File: w.f, place: place{position.Line, position.Column}, Function: w.function, What: what,
		from: w.offset(from), to: w.offset(to), now: now,
	})
}

func (w *finder) text(from, to token.Pos) []byte { return w.f.Text[w.offset(from):w.offset(to)] }

func (w *finder) offset(p token.Pos) int { return w.p.tree.Files.PositionFor(p, false).Offset }
