package sim

import (
	"encoding/json"
	"math"
)

// Schema returns the JSON Schema (draft 2020-12) of a spec file, indented. It
// is made from Fields and the registries, as help and checks are.
func Schema() []byte {
	properties := map[string]any{}
	for i := range fieldTable {
		properties[fieldTable[i].Name] = fieldTable[i].schema()
	}
	b, err := json.MarshalIndent(map[string]any{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "Interleave spec",
		"description":          "All settings of one comparison of concurrency controls. A list of values makes several runs.",
		"type":                 "object",
		"additionalProperties": false,
		"properties":           properties,
	}, "", "  ")
	if err != nil {
		panic("sim: schema: " + err.Error())
	}
	return append(b, '\n')
}

type schema = map[string]any

func (f *Field) schema() schema {
	one := f.schemaOfOne()
	s := one
	if f.Many {
		s = schema{"anyOf": []any{one, schema{"type": "array", "items": one, "minItems": 1, "uniqueItems": true}}}
		if f.Kind != KindText {
			// Several values may be written in one text, as on the command line.
			s["anyOf"] = append(s["anyOf"].([]any), schema{"type": "string", "pattern": ","})
		}
	}
	s["description"] = f.Help
	if f.Default != "" {
		s["default"] = f.schemaDefault()
	}
	return s
}

func (f *Field) schemaDefault() any {
	switch f.Kind {
	case KindWhole, KindNumber, KindBool:
		return json.RawMessage(f.first())
	default:
		return f.Default
	}
}

func (f *Field) schemaOfOne() schema {
	switch f.Kind {
	case KindWhole, KindNumber:
		s := schema{"type": "number", "minimum": f.Min}
		if f.Kind == KindWhole {
			s["type"] = "integer"
		}
		if !math.IsInf(f.Max, 1) && f.Max <= 1<<53 {
			s["maximum"] = f.Max
		}
		return s
	case KindBool:
		return schema{"type": "boolean"}
	case KindChoice:
		choices := f.Choices()
		if f.Name == "protocol" {
			choices = append([]string{"all"}, choices...)
		}
		return schema{"type": "string", "enum": choices}
	case KindText:
		return schema{"type": "string"}
	case KindDuration:
		return schema{"type": "string", "pattern": `^([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+$|^0$`}
	case KindDist:
		return schema{"type": "string", "pattern": `^[0-9.]|^(constant|exp|exponential|lognormal|uniform|empirical):`}
	case KindBytes:
		return schema{"anyOf": []any{
			schema{"type": "integer", "minimum": 0},
			schema{"type": "string", "pattern": `^[0-9_]+(B|kB|MB|GB)?$`},
		}}
	case KindMap:
		return schema{"type": "object", "additionalProperties": schema{"type": []string{"string", "number", "boolean"}}}
	default:
		panic("sim: unknown kind of field")
	}
}
