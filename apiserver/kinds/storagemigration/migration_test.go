package storagemigration

import (
	"strings"
	"testing"

	migrationv1 "k8s.io/api/storagemigration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

func with(version string, kinds ...migrationv1.MigrationConditionType) *migration {
	m := &migration{Status: migrationv1.StorageVersionMigrationStatus{ResourceVersion: version}}
	for _, kind := range kinds {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
			Type: string(kind), Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.NewTime(kindstest.Now),
		})
	}
	return m
}

func TestMigrationsEndOnce(t *testing.T) {
	for name, test := range map[string]struct {
		m, old *migration
		want   string
	}{
		"runs":           {with("7", "Running"), with(""), ""},
		"ends":           {with("7", "Succeeded"), with("7", "Running"), ""},
		"other version":  {with("8", "Running"), with("7", "Running"), `status.resourceVersion: Invalid value: "8": field is immutable`},
		"no version":     {with("x"), with(""), `status.resourceVersion: Invalid value: "x": `},
		"both":           {with("7", "Succeeded", "Failed"), with("7"), "Both success and failed conditions cannot be true at the same time"},
		"runs again":     {with("7", "Running"), with("7", "Succeeded"), "Success condition cannot be set to false once it is true"},
		"better luck":    {with("7", "Running"), with("7", "Failed"), "Failed condition cannot be set to false once it is true"},
		"stays as it is": {with("7", "Failed"), with("7", "Failed"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(kindstest.Messages(validateMigrationStatus(test.m, test.old)), "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
