package table

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Convertor prints a kind by its columns. It is safe for concurrent use.
type Convertor struct {
	// Kind is what is printed.
	Kind *resource.Any
	now  func() time.Time
}

// New returns the Convertor of a kind; now is the cluster's time, by which ages are told.
func New(kind *resource.Any, now func() time.Time) Convertor { return Convertor{kind, now} }

// ConvertToTable implements rest.TableConvertor for an object or a list.
func (t Convertor) ConvertToTable(_ context.Context, in runtime.Object, options runtime.Object) (*metav1.Table, error) {
	in = storage.Uncache(in)
	table := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = t.definitions()
	}
	if m, err := meta.ListAccessor(in); err == nil {
		table.ListMeta = metav1.ListMeta{ResourceVersion: m.GetResourceVersion(), Continue: m.GetContinue(),
			RemainingItemCount: m.GetRemainingItemCount()}
	} else if m, err := meta.CommonAccessor(in); err == nil {
		table.ResourceVersion = m.GetResourceVersion()
	}
	now := t.now()
	var err error
	table.Rows, err = metatable.MetaToTableRow(in, func(item runtime.Object, _ metav1.Object, _, _ string) ([]any, error) {
		obj, ok := item.(resource.Object) // shared: asObject would change it
		if !ok {
			return nil, fmt.Errorf("table: %T has no columns", item)
		}
		return t.cells(obj, now), nil
	})
	return table, err
}

func (t Convertor) definitions() []metav1.TableColumnDefinition {
	definitions := make([]metav1.TableColumnDefinition, len(t.Kind.Columns))
	for i, c := range t.Kind.Columns {
		definitions[i] = metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format,
			Description: c.Description, Priority: c.Priority}
	}
	return definitions
}

func (t Convertor) cells(obj resource.Object, now time.Time) []any {
	cells := make([]any, len(t.Kind.Columns))
	for i, c := range t.Kind.Columns {
		cells[i] = c.Cell(obj, now)
	}
	return cells
}
