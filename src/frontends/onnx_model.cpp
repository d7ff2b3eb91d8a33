#include "frontends/onnx_model.h"

#include <frontends/onnx.pb.h>  // made by protoc

#include <climits>
#include <filesystem>
#include <unordered_set>

#include "frontends/onnx_reader.h"
#include "support/check.h"
#include "support/plural.h"

namespace stax::onnx {
namespace {

// The numbers of the standard's AttributeType.
enum AttributeKind : int {
  kUndefined = 0,
  kFloatAttribute = 1,
  kIntAttribute = 2,
  kStringAttribute = 3,
  kTensorAttribute = 4,
  kGraphAttribute = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kSparseTensors = 12,
  kType = 13,
  kTypes = 14
};

std::string normal_domain(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

std::vector<std::string> strings(const google::protobuf::RepeatedPtrField<std::string>& field) {
  return {field.begin(), field.end()};
}

// Old models leave the kind out; then the field that is set tells it.
int kind_of(const onnx_wire::Attribute& message) {
  if (message.type() != kUndefined) return message.type();
  if (message.has_f()) return kFloatAttribute;
  if (message.has_i()) return kIntAttribute;
  if (message.has_s()) return kStringAttribute;
  if (message.has_t()) return kTensorAttribute;
  if (message.has_g()) return kGraphAttribute;
  if (message.floats_size() > 0) return kFloats;
  if (message.ints_size() > 0) return kInts;
  if (message.strings_size() > 0) return kStrings;
  if (message.tensors_size() > 0) return kTensors;
  return message.graphs_size() > 0 ? kGraphs : kUndefined;
}

class Reader {
 public:
  Reader(const std::string& what, const std::string& folder) : what_(what), tensors_(what, folder) {}

  Model read(onnx_wire::Model& message) {
    STAX_CHECK(message.has_graph() && message.ir_version() > 0,
               "{}: expected an ONNX model with a version and a graph, got neither or one of them; the file "
               "is truncated or of "
               "another kind",
               what_);
    Model model;
    model.ir_version = message.ir_version();
    model.producer = message.producer_name();
    model.opsets = read_opsets(message.opset_import());
    if (model.opsets.empty() && model.ir_version < 3) model.opsets[""] = 1;  // as the standard then said
    STAX_CHECK(!model.opsets.empty(), "{}: expected an ONNX model that names its operator sets, got none",
               what_);
    for (const auto& pair : message.metadata_props()) model.metadata[pair.key()] = pair.value();
    model.graph = read_graph(*message.mutable_graph());
    for (auto& function : *message.mutable_functions()) model.functions.push_back(read_function(function));
    return model;
  }

 private:
  std::map<std::string, int64_t> read_opsets(
      const google::protobuf::RepeatedPtrField<onnx_wire::OpsetImport>& imports) {
    std::map<std::string, int64_t> out;
    for (const auto& import : imports) {
      STAX_CHECK(import.version() > 0, "{}: expected operator set '{}' with a positive version, got {}",
                 what_, import.domain(), import.version());
      STAX_CHECK(out.emplace(normal_domain(import.domain()), import.version()).second,
                 "{}: expected operator set '{}' once, got it twice", what_, import.domain());
    }
    return out;
  }

  Attribute read_attribute(onnx_wire::Attribute& message, const std::string& owner) {
    Attribute out{message.name(), {}, message.ref_attr_name()};
    if (!out.reference.empty()) return out;
    const std::string role = fmt::format("{}: attribute", owner);
    switch (kind_of(message)) {
      case kFloatAttribute:
        out.value = message.f();
        break;
      case kIntAttribute:
        out.value = message.i();
        break;
      case kStringAttribute:
        out.value = message.s();
        break;
      case kTensorAttribute:
        out.value = tensors_.read(*message.mutable_t(), role);
        break;
      case kGraphAttribute:
        out.value = std::make_shared<const Graph>(read_graph(*message.mutable_g()));
        break;
      case kFloats:
        out.value = std::vector<float>(message.floats().begin(), message.floats().end());
        break;
      case kInts:
        out.value = std::vector<int64_t>(message.ints().begin(), message.ints().end());
        break;
      case kStrings:
        out.value = strings(message.strings());
        break;
      case kTensors: {
        std::vector<Tensor> list;
        for (auto& tensor : *message.mutable_tensors()) list.push_back(tensors_.read(tensor, role));
        out.value = std::move(list);
        break;
      }
      case kGraphs: {
        std::vector<std::shared_ptr<const Graph>> list;
        for (auto& graph : *message.mutable_graphs())
          list.push_back(std::make_shared<const Graph>(read_graph(graph)));
        out.value = std::move(list);
        break;
      }
      case kType:
      case kTypes:
        out.value = UnreadValue{"type"};
        break;
      case kSparseTensor:
      case kSparseTensors:
        throw_user_error(fmt::format("{}: {} '{}': expected a dense value, got a sparse tensor", what_, role,
                                     message.name()));
      default:
        throw_user_error(fmt::format("{}: {} '{}': expected a kind that the ONNX standard has, got number {}",
                                     what_, role, message.name(), kind_of(message)));
    }
    return out;
  }

  Node read_node(onnx_wire::Node& message) {
    Node node{message.name(),
              message.op_type(),
              normal_domain(message.domain()),
              message.overload(),
              strings(message.input()),
              strings(message.output()),
              {}};
    STAX_CHECK(!node.op_type.empty(), "{}: expected every node to name its operator, got node '{}' without",
               what_, node.name);
    std::unordered_set<std::string> seen;
    for (auto& attribute : *message.mutable_attribute()) {
      node.attributes.push_back(read_attribute(attribute, node.describe()));
      STAX_CHECK(seen.insert(attribute.name()).second, "{}: {}: expected attribute '{}' once, got it twice",
                 what_, node.describe(), attribute.name());
    }
    return node;
  }

  ValueInfo read_value(const onnx_wire::ValueInfo& message) {
    ValueInfo value{message.name(), "", {}, {}};
    const onnx_wire::Type& type = message.type();
    switch (type.value_case()) {
      case onnx_wire::Type::kTensorType:
        value.type = element_type_name(type.tensor_type().elem_type());
        value.dtype = element_dtype(type.tensor_type().elem_type());
        if (type.tensor_type().has_shape()) value.dims = read_dims(type.tensor_type().shape());
        break;
      case onnx_wire::Type::kSequenceType:
        value.type = "sequence";
        break;
      case onnx_wire::Type::kMapType:
        value.type = "map";
        break;
      case onnx_wire::Type::kOpaqueType:
        value.type = "opaque";
        break;
      case onnx_wire::Type::kSparseTensorType:
        value.type = "sparse tensor";
        break;
      case onnx_wire::Type::kOptionalType:
        value.type = "optional";
        break;
      case onnx_wire::Type::VALUE_NOT_SET:
        break;
    }
    return value;
  }

  // Some exporters write -1 for a size they do not know.
  std::vector<Dim> read_dims(const onnx_wire::Shape& shape) {
    std::vector<Dim> dims;
    for (const auto& dim : shape.dim()) {
      Dim out{{}, dim.dim_param()};
      if (dim.has_dim_value() && dim.dim_value() >= 0) out.size = dim.dim_value();
      dims.push_back(std::move(out));
    }
    return dims;
  }

  Graph read_graph(onnx_wire::Graph& message) {
    STAX_CHECK(message.sparse_initializer_size() == 0,
               "{}: expected dense initializers, got sparse tensor '{}'", what_,
               message.sparse_initializer(0).values().name());
    Graph graph;
    graph.name = message.name();
    for (const auto& value : message.input()) graph.inputs.push_back(read_value(value));
    for (const auto& value : message.output()) graph.outputs.push_back(read_value(value));
    for (const auto& value : message.value_info()) graph.value_info.push_back(read_value(value));
    for (auto& tensor : *message.mutable_initializer())
      graph.initializers.push_back(tensors_.read(tensor, "initializer"));
    for (auto& node : *message.mutable_node()) graph.nodes.push_back(read_node(node));
    return graph;
  }

  Function read_function(onnx_wire::Function& message) {
    Function function;
    function.name = message.name();
    function.domain = normal_domain(message.domain());
    function.overload = message.overload();
    function.inputs = strings(message.input());
    function.outputs = strings(message.output());
    function.attributes = strings(message.attribute());
    function.opsets = read_opsets(message.opset_import());
    for (auto& attribute : *message.mutable_attribute_proto()) {
      function.default_attributes.push_back(read_attribute(attribute, "function '" + function.name + "'"));
    }
    for (auto& node : *message.mutable_node()) function.nodes.push_back(read_node(node));
    return function;
  }

  const std::string& what_;
  TensorReader tensors_;
};

// Checks that every value is made once, before it is used. Inner graphs see the values of the graphs around
// them.
class ScopeCheck {
 public:
  explicit ScopeCheck(const std::string& what) : what_(what) {}

  void graph(const Graph& graph) {
    scopes_.emplace_back();
    for (const ValueInfo& input : graph.inputs) define(input.name, "input");
    std::unordered_set<std::string> initializers;
    for (const Tensor& tensor : graph.initializers) {
      STAX_CHECK(!tensor.name.empty() && initializers.insert(tensor.name).second,
                 "{}: expected every initializer to have a name of its own, got '{}' twice", what_,
                 tensor.name);
      scopes_.back().insert(tensor.name);  // it may be an input, whose default it then is
    }
    nodes(graph.nodes);
    for (const ValueInfo& output : graph.outputs)
      require(output.name, fmt::format("output of graph '{}'", graph.name));
    scopes_.pop_back();
  }

  void function(const Function& function) {
    scopes_.emplace_back();
    for (const std::string& input : function.inputs) define(input, "input");
    nodes(function.nodes);
    for (const std::string& output : function.outputs)
      require(output, fmt::format("output of function '{}'", function.name));
    scopes_.pop_back();
  }

 private:
  void nodes(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      for (const std::string& input : node.inputs) {
        if (!input.empty()) require(input, node.describe());
      }
      for (const Attribute& attribute : node.attributes) {
        if (const auto* inner = std::get_if<std::shared_ptr<const Graph>>(&attribute.value)) {
          if (*inner != nullptr) graph(**inner);
        }
        if (const auto* list = std::get_if<std::vector<std::shared_ptr<const Graph>>>(&attribute.value)) {
          for (const auto& inner : *list) graph(*inner);
        }
      }
      for (const std::string& output : node.outputs) {
        if (!output.empty()) define(output, node.describe());
      }
    }
  }

  void define(const std::string& name, const std::string& by) {
    STAX_CHECK(!name.empty() && scopes_.back().insert(name).second,
               "{}: {}: expected every value to be made once, got '{}' again", what_, by, name);
  }
  void require(const std::string& name, const std::string& by) const {
    for (const auto& scope : scopes_) {
      if (scope.count(name) > 0) return;
    }
    throw_user_error(fmt::format("{}: {}: expected a value that is made before, got '{}'", what_, by, name));
  }

  const std::string& what_;
  std::vector<std::unordered_set<std::string>> scopes_;
};

template <typename T>
T get_attribute(const Node& node, std::string_view name, T otherwise, std::string_view kind) {
  const Attribute* attribute = node.find(name);
  if (attribute == nullptr) return otherwise;
  const T* value = std::get_if<T>(&attribute->value);
  STAX_CHECK(value != nullptr, "{}: expected attribute '{}' to be {}, got another kind", node.describe(),
             name, kind);
  return *value;
}

}  // namespace

const Attribute* Node::find(std::string_view attribute) const {
  for (const Attribute& candidate : attributes) {
    if (candidate.name == attribute) return &candidate;
  }
  return nullptr;
}

int64_t Node::get_int(std::string_view attribute, int64_t otherwise) const {
  return get_attribute(*this, attribute, otherwise, "an integer");
}
float Node::get_float(std::string_view attribute, float otherwise) const {
  return get_attribute(*this, attribute, otherwise, "a float");
}
std::string Node::get_string(std::string_view attribute, std::string otherwise) const {
  return get_attribute(*this, attribute, std::move(otherwise), "a string");
}
std::vector<int64_t> Node::get_ints(std::string_view attribute, std::vector<int64_t> otherwise) const {
  return get_attribute(*this, attribute, std::move(otherwise), "a list of integers");
}

std::string Node::describe() const {
  const std::string& label = !name.empty() || outputs.empty() ? name : outputs[0];
  return fmt::format("{}{}{} '{}'", domain, domain.empty() ? "" : ".", op_type, label);
}

Model parse_model(std::span<const std::byte> bytes, const std::string& what, const std::string& folder) {
  STAX_CHECK(bytes.size() <= INT_MAX,
             "{}: expected a model of at most 2 GB, got {}; save it with external data", what,
             counted(bytes.size(), "byte"));
  onnx_wire::Model message;
  STAX_CHECK(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
             "{}: expected an ONNX model, got {} that are no valid message; the file is "
             "truncated or of another kind",
             what, counted(bytes.size(), "byte"));
  Model model = Reader(what, folder).read(message);
  ScopeCheck check(what);
  check.graph(model.graph);
  for (const Function& function : model.functions) check.function(function);
  return model;
}

Model load_model(const std::string& path) {
  const auto file = MappedFile::open(path);
  return parse_model(file->bytes(), path, std::filesystem::path(path).parent_path().string());
}

}  // namespace stax::onnx
