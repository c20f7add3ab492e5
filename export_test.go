package catena

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"unsafe"

	"github.com/catena-http/catena/auth"
)

// SettingsLostByClone names the settings that do not survive the copy a derived
// client begins with, or that it would share with the original.
func SettingsLostByClone() (lost []string) {
	var s settings
	fill(reflect.ValueOf(&s).Elem(), "settings")
	clone := s.clone()
	compare("settings", reflect.ValueOf(&s).Elem(), reflect.ValueOf(&clone).Elem(), &lost)
	return lost
}

// settable is the field v without the guard on unexported ones.
func settable(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// fill sets every field to something that is not zero.
func fill(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(settable(v.Field(i)), name+"."+v.Type().Field(i).Name)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.String:
		v.SetString("seven")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 4))
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { return nil }))
	case reflect.Interface:
		i := slices.IndexFunc(implementations, func(value any) bool { return reflect.TypeOf(value).Implements(v.Type()) })
		if i < 0 {
			panic(fmt.Sprintf("%s: a value of %v is missing here", name, v.Type()))
		}
		v.Set(reflect.ValueOf(implementations[i]))
	default:
		panic(fmt.Sprintf("%s: fields of %v are new here", name, v.Type()))
	}
}

// implementations are values for the fields that are interfaces.
var implementations = []any{auth.None, struct{ http.CookieJar }{}}

func compare(name string, a, b reflect.Value, lost *[]string) {
	var same bool
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			compare(name+"."+a.Type().Field(i).Name, settable(a.Field(i)), settable(b.Field(i)), lost)
		}
		return
	case reflect.Slice: // a copy, lest both append to the same memory
		same = a.Len() == b.Len() && a.Pointer() != b.Pointer()
	case reflect.Func:
		same = a.Pointer() == b.Pointer()
	default:
		same = a.Interface() == b.Interface()
	}
	if !same {
		*lost = append(*lost, name)
	}
}
