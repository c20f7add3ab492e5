// Package catena is an HTTP client made as a chain of interceptors.
//
//	client, err := catena.New()
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	resp, err := client.Get(ctx, "https://example.com/")
//
// Messages are *http.Request and *http.Response, so Catena drops into existing
// code: as a client, or as the http.RoundTripper of another one. Package chain
// tells how to write an interceptor, package event how to observe a call.
package catena
