package sim

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Load reads a spec file's content into s: a YAML mapping of setting to value,
// or to a list of values for a setting that takes several, or to a mapping for
// parameters. name is the file's, for messages. The error begins with
// name:line:column.
func (s *Spec) Load(name string, data []byte) error {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return yamlSyntax(name, err)
	}
	if len(file.Docs) > 1 {
		return fmt.Errorf("%s: %d documents: want one", name, len(file.Docs))
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil
	}
	var entries []*ast.MappingValueNode
	switch body := file.Docs[0].Body.(type) {
	case *ast.MappingNode:
		entries = body.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{body}
	case *ast.NullNode, *ast.CommentGroupNode:
		return nil
	default:
		return at(name, body, "want a mapping of setting to value")
	}
	seen := map[string]bool{}
	for _, e := range entries {
		key := e.Key.GetToken().Value
		if seen[key] {
			return at(name, e.Key, "%s is there twice", key)
		}
		seen[key] = true
		if err := s.loadField(name, key, e); err != nil {
			return err
		}
	}
	return nil
}

func (s *Spec) loadField(name, key string, e *ast.MappingValueNode) error {
	f, err := fieldNamed(key)
	if err != nil {
		return at(name, e.Key, "%w", err)
	}
	switch v := e.Value.(type) {
	case *ast.SequenceNode:
		if !f.Many {
			return at(name, v, "%s takes one value: want %s", key, f.Allowed())
		}
		texts := make([]string, len(v.Values))
		for i, n := range v.Values {
			if texts[i], err = scalar(name, key, n); err != nil {
				return err
			}
		}
		err = s.Set(key, strings.Join(texts, ","))
	case *ast.MappingNode:
		return s.loadPairs(name, f, v, v.Values)
	case *ast.MappingValueNode:
		return s.loadPairs(name, f, v, []*ast.MappingValueNode{v})
	default:
		var value string
		if value, err = scalar(name, key, v); err != nil {
			return err
		}
		err = s.Set(key, value)
	}
	if err != nil {
		return at(name, e.Value, "%w", err)
	}
	return nil
}

func (s *Spec) loadPairs(name string, f *Field, n ast.Node, entries []*ast.MappingValueNode) error {
	if f.Kind != KindMap {
		return at(name, n, "%s takes no mapping: want %s", f.Name, f.Allowed())
	}
	for _, e := range entries {
		key := e.Key.GetToken().Value
		value, err := scalar(name, f.Name+"."+key, e.Value)
		if err != nil {
			return err
		}
		if err := s.Set(f.Name, key+"="+value); err != nil {
			return at(name, e.Key, "%w", err)
		}
	}
	return nil
}

// scalar returns a value as it is written: 1e3 stays 1e3, and 0.50 is not 0.5.
func scalar(name, field string, n ast.Node) (string, error) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, nil
	case *ast.LiteralNode:
		return strings.TrimSuffix(v.Value.Value, "\n"), nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, nil
	case *ast.NullNode:
		return "", at(name, n, "%s has no value", field)
	default:
		return "", at(name, n, "%s: want a plain value", field)
	}
}

func at(name string, n ast.Node, format string, args ...any) error {
	return atToken(name, n.GetToken(), fmt.Errorf(format, args...))
}

func atToken(name string, t *token.Token, err error) error {
	if t == nil || t.Position == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Errorf("%s:%d:%d: %w", name, t.Position.Line, t.Position.Column, err)
}

// yamlSyntax makes one line of the parser's error, which comes with an excerpt.
func yamlSyntax(name string, err error) error {
	if e, ok := err.(interface {
		GetMessage() string
		GetToken() *token.Token
	}); ok {
		return atToken(name, e.GetToken(), fmt.Errorf("not YAML: %s", e.GetMessage()))
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%s: not YAML: %s", name, line)
}

// YAML writes the spec as a file that Load reads: every setting with its value,
// under a comment that says what it is.
func (s *Spec) YAML() string {
	var b strings.Builder
	group := ""
	for i := range fieldTable {
		f := &fieldTable[i]
		value := s.Get(f.Name)
		if value == "" {
			continue
		}
		if f.Group != group {
			if group != "" {
				b.WriteByte('\n')
			}
			group = f.Group
			b.WriteString("# " + group + "\n")
		}
		writeField(&b, f, value)
	}
	return b.String()
}

func writeField(b *strings.Builder, f *Field, value string) {
	if f.Kind == KindMap {
		b.WriteString(f.Name + ":\n")
		for _, kv := range strings.Split(value, "\n") {
			k, v, _ := strings.Cut(kv, "=")
			b.WriteString("  " + yamlScalar(k, KindText) + ": " + yamlScalar(v, KindText) + "\n")
		}
		return
	}
	b.WriteString(f.Name + ": ")
	if f.Many && strings.Contains(value, ",") {
		values := strings.Split(value, ",")
		for i := range values {
			values[i] = yamlScalar(values[i], f.Kind)
		}
		b.WriteString("[" + strings.Join(values, ", ") + "]")
	} else {
		b.WriteString(yamlScalar(value, f.Kind))
	}
	b.WriteString(" # " + f.Help + "\n")
}

// yamlScalar quotes what YAML could take for something else.
func yamlScalar(s string, k FieldKind) string {
	switch k {
	case KindWhole, KindNumber, KindBool:
		return s
	default:
	}
	plain := s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z' || s[0] >= '1' && s[0] <= '9')
	for _, c := range s {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/µ", c) {
			plain = false
		}
	}
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		plain = false
	}
	if plain {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}
