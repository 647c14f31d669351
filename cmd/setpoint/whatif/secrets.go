package whatif

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	// listChunk is how many objects are asked for at once.
	listChunk = 500
	// namesOnly asks for a table of which no row brings its object: annotations may hold values.
	namesOnly = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

var errNoTypes = errors.New("the server tells no types of Secrets")

// typesOfSecrets are the types of Secrets by NAMESPACE/NAME. Nothing else of them leaves the server.
func typesOfSecrets(ctx context.Context, config *rest.Config) (map[string]corev1.SecretType, error) {
	names, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	plain := rest.CopyConfig(config)
	plain.ContentType, plain.AcceptContentTypes = "application/json", "application/json"
	client, err := kubernetes.NewForConfig(plain)
	if err != nil {
		return nil, err
	}
	known := map[string]corev1.SecretType{}
	for options := (metav1.ListOptions{Limit: listChunk}); ; {
		list, err := names.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if err := typesIn(ctx, client.CoreV1().RESTClient(), list.Items[i].Name, known); err != nil {
				return nil, err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return known, nil
		}
	}
}

func typesIn(ctx context.Context, client rest.Interface, namespace string, known map[string]corev1.SecretType) error {
	for options := (metav1.ListOptions{Limit: listChunk}); ; {
		table := &metav1.Table{}
		err := client.Get().Namespace(namespace).Resource("secrets").VersionedParams(&options, scheme.ParameterCodec).
			Param("includeObject", string(metav1.IncludeNone)).SetHeader("Accept", namesOnly).Do(ctx).Into(table)
		if err != nil {
			return err
		}
		for i := range table.Rows {
			cells := table.Rows[i].Cells
			if len(cells) < 2 {
				return errNoTypes
			}
			name, named := cells[0].(string)
			kind, typed := cells[1].(string)
			if !named || !typed {
				return errNoTypes
			}
			known[namespace+"/"+name] = corev1.SecretType(kind)
		}
		if options.Continue = table.Continue; options.Continue == "" {
			return nil
		}
	}
}
