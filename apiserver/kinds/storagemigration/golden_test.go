package storagemigration

import (
	"testing"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

func TestGolden(t *testing.T) { kindstest.Golden(t, Kinds()) }
