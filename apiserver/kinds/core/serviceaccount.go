package core

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func serviceAccounts() resource.Kind[*corev1.ServiceAccount] {
	return resource.Kind[*corev1.ServiceAccount]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		Plural:           "serviceaccounts",
		ReturnDeleted:    true,
		ShortNames:       []string{"sa"},
		New:              func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} },
		NewList:          func() runtime.Object { return &corev1.ServiceAccountList{} },
		Subresources: []resource.Subresource{
			{Name: "token", Kind: authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), Verbs: []string{"create"}},
		},
		Columns: []resource.Column[*corev1.ServiceAccount]{
			column.Name[*corev1.ServiceAccount](),
			column.Age[*corev1.ServiceAccount](),
		},
	}
}
