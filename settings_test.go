package setpoint

import (
	"reflect"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/server/settings"
)

// ofServersAlone are settings that no Config has, and why.
var ofServersAlone = map[string]string{
	"SigningDuration": "clusters of a process end before its certificates do: a year",
}

// TestConfigHasEverySetting: of the same name and type, and what is written into it arrives.
func TestConfigHasEverySetting(t *testing.T) {
	fields := reflect.TypeFor[settings.Options]()
	for i := range fields.NumField() {
		field := fields.Field(i)
		own, has := reflect.TypeFor[Config]().FieldByName(field.Name)
		if !has || own.Type != field.Type {
			if ofServersAlone[field.Name] == "" {
				t.Errorf("Config lacks %s, a %s, or says otherwise what type it is", field.Name, field.Type)
			}
			continue
		}
		var c Config
		value := some(t, field.Type)
		reflect.ValueOf(&c).Elem().FieldByName(field.Name).Set(value)
		if got := reflect.ValueOf(c.settings()).Field(i); !reflect.DeepEqual(got.Interface(), value.Interface()) {
			t.Errorf("%s is %v in Config, %v in its settings", field.Name, value, got)
		}
	}
}

// some is a value of the type that is not its zero value.
func some(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	for _, value := range []any{"x", 1, true, []string{"x"}, time.Hour} {
		if reflect.TypeOf(value) == of {
			return reflect.ValueOf(value)
		}
	}
	t.Fatalf("there is no value of a %s yet", of)
	return reflect.Value{}
}
