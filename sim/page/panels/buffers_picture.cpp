// SPDX-License-Identifier: BSD-3-Clause
#include "sim/page/panels/panels.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/units.h"
#include "core/layout/mesh.h"
#include "sim/page/page.h"
#include "sim/picture/drawing.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kMostNames = 8, kMostBufferRows = 8, kMostSections = 400, kMostListed = 12;
constexpr double kBufferBar = 22, kBufferGap = 6, kBufferName = 22;

// Consecutive elements of a buffer that are of one tensor; of none: padding.
struct Section {
  std::optional<ModelTensorId> tensor;
  Box box;
  std::int64_t elements;
  bool is_same(const Section& other) const {
    return tensor == other.tensor && (!tensor || box == other.box);
  }
};

// Ranks that have the same sections in the buffers of one name.
struct Row {
  std::vector<Rank> ranks;
  std::vector<Section> sections;
};
struct NamedBuffers {
  std::string_view side, name;
  DType dtype;
  Shape shape;  // on the first rank
  std::vector<Row> rows;
};

// Rows of a tensor that follow each other, or what lies between them.
void append(std::vector<Section>& sections, Section next) {
  if (next.elements == 0) return;
  if (!sections.empty() && sections.back().tensor == next.tensor) {
    Section& last = sections.back();
    bool continues = !next.tensor;
    if (next.tensor && next.box.dims() > 0 && last.box.hi[0] == next.box.lo[0]) {
      Box rest = next.box;
      rest.lo[0] = last.box.lo[0];
      rest.hi[0] = last.box.hi[0];
      continues = rest == last.box;
    }
    if (continues) {
      last.elements += next.elements;
      if (next.tensor) last.box.hi[0] = next.box.hi[0];
      return;
    }
  }
  sections.push_back(std::move(next));
}

// In the order of their first elements. Padding between parts that alternate is shown after them.
std::vector<Section> sections_of(const StoredBuffer& buffer) {
  std::vector<Section> out;
  std::int64_t end = 0, shown = 0, whole = element_count(buffer.shape);
  for (const StoredPart& part : buffer.parts) {
    std::int64_t gap = std::max<std::int64_t>(part.offset - end, 0), count = part.box.volume();
    append(out, {std::nullopt, {}, gap});
    append(out, {part.tensor, part.box, count});
    end = std::max(end, part.view().end());
    shown += gap + count;
  }
  append(out, {std::nullopt, {}, std::max<std::int64_t>(whole - shown, 0)});
  return out;
}

bool same_sections(const std::vector<Section>& a, const std::vector<Section>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Section& x, const Section& y) { return x.is_same(y); });
}

// With '#' for every number: layers and experts are alike.
std::string pattern_of(std::string_view name) {
  std::string out;
  for (char c : name)
    if (std::isdigit(static_cast<unsigned char>(c)) == 0)
      out += c;
    else if (!out.ends_with('#'))
      out += '#';
  return out;
}

// The first buffers of each pattern of names; those that hold several tensors come first.
std::vector<NamedBuffers> buffers_of(const Stored& side, std::string_view title) {
  std::map<std::string, std::string_view> chosen;
  std::vector<NamedBuffers> out;
  std::map<std::string_view, std::size_t> at;
  for (const StoredBuffer& buffer : side.buffers()) {
    if (chosen.try_emplace(pattern_of(buffer.name), buffer.name).first->second != buffer.name)
      continue;
    auto [place, is_new] = at.try_emplace(buffer.name, out.size());
    if (is_new) out.push_back({title, buffer.name, buffer.dtype, buffer.shape, {}});
    std::vector<Row>& rows = out[place->second].rows;
    std::vector<Section> sections = sections_of(buffer);
    auto same = std::find_if(rows.begin(), rows.end(),
                             [&](const Row& row) { return same_sections(row.sections, sections); });
    if (same == rows.end())
      rows.push_back({{buffer.rank}, std::move(sections)});
    else
      same->ranks.push_back(buffer.rank);
  }
  std::stable_sort(out.begin(), out.end(), [](const NamedBuffers& a, const NamedBuffers& b) {
    return std::pair(a.rows.front().sections.size() < 2, a.rows.size() < 2) <
           std::pair(b.rows.front().sections.size() < 2, b.rows.size() < 2);
  });
  if (out.size() > kMostNames) out.resize(kMostNames);
  return out;
}

class BuffersDrawing {
 public:
  BuffersDrawing(Node panel, const ModelTensors& tensors, const std::vector<NamedBuffers>& all)
      : tensors_(tensors) {
    double height = 0;
    for (const NamedBuffers& buffers : all) {
      height += kBufferName + static_cast<double>(shown(buffers)) * (kBufferBar + kBufferGap);
      for (const Row& row : buffers.rows)
        for (const Section& section : row.sections)
          if (section.tensor) colours_.try_emplace(own(*section.tensor), colours_.size());
    }
    svg_ = add_chart(panel, kPanelWidth, height, "what lies where in the buffers of ranks");
    names_ = add(svg_, "g", {{"class", "names"}});
    for (const NamedBuffers& buffers : all) draw(buffers);
  }

  static std::size_t shown(const NamedBuffers& buffers) {
    return std::min(buffers.rows.size(), kMostBufferRows);
  }

 private:
  // Under its first name.
  ModelTensorId own(ModelTensorId tensor) const { return tensors_[tensor].same_as; }

  void draw(const NamedBuffers& buffers) {
    add(svg_, "text", {{"x", kPanelLeft}, {"y", y_ + kBufferName - 7}},
        fmt::format("{}: {}, {}[{}]", buffers.side, buffers.name, text(buffers.dtype),
                    text(buffers.shape)));
    y_ += kBufferName;
    for (std::size_t i = 0; i < shown(buffers); ++i, y_ += kBufferBar + kBufferGap)
      draw(buffers.rows[i]);
  }

  void draw(const Row& row) {
    add(names_, "text", {{"x", kPanelLeft - 8}, {"y", y_ + kBufferBar - 7}}, ranks_name(row.ranks));
    std::int64_t whole = 0, done = 0;
    for (const Section& section : row.sections) whole += section.elements;
    double scale =
        (kPanelWidth - kPanelLeft) / static_cast<double>(std::max<std::int64_t>(whole, 1));
    for (std::size_t i = 0; i < std::min(row.sections.size(), kMostSections); ++i) {
      const Section& section = row.sections[i];
      draw(section, kPanelLeft + static_cast<double>(done) * scale,
           static_cast<double>(section.elements) * scale);
      done += section.elements;
    }
  }

  void draw(const Section& section, double x, double width) {
    Node bar = add(svg_, "rect", {{"x", x}, {"y", y_}, {"width", width}, {"height", kBufferBar}});
    if (!section.tensor) {
      set(bar, {"class", "ground"});
      add_tip(bar, fmt::format("padding: {}", counted(section.elements, "element")));
      return;
    }
    Colour ground = category_colour(colours_.at(own(*section.tensor)), colours_.size());
    fill(bar, ground);
    set(bar, {"stroke", "var(--ground)"});
    add_tip(bar, fmt::format("{}: {}", element_text(tensors_[*section.tensor], section.box),
                             counted(section.elements, "element")));
    if (std::string label = label_of(section, width - 8); !label.empty())
      add(svg_, "text",
          {{"class", "labels"},
           {"x", x + 4},
           {"y", y_ + kBufferBar - 7},
           {"style", fmt::format("font-size: 11px; fill: {}", text(ink_on(ground)))}},
          label);
  }

  // As much of the tensor's name and the box as there is room for.
  std::string label_of(const Section& section, double room) const {
    const ModelTensor& tensor = tensors_[*section.tensor];
    std::string_view last = tensor.name;
    std::size_t dot = last.rfind('.');
    if (dot != 0 && dot != last.npos) dot = last.rfind('.', dot - 1);
    if (dot != last.npos) last.remove_prefix(dot + 1);  // "q_proj.weight"
    std::string box = section.box.dims() == 0 ? "" : text(section.box);
    for (const std::string& label :
         {element_text(tensor, section.box), fmt::format("{}{}", last, box), std::string(last),
          std::string(last.substr(0, last.find('.')))})
      if (text_width(label, 11) <= room) return label;
    return {};
  }

  const ModelTensors& tensors_;
  std::map<ModelTensorId, std::size_t> colours_;
  Node svg_, names_;
  double y_ = 0;
};

void list_sections(Node panel, const ModelTensors& tensors, const std::vector<NamedBuffers>& all) {
  HtmlTable table(add_folded(panel, "Sections"), "In memory order",
                  {"side", "buffer", "ranks", "sections"});
  for (const NamedBuffers& buffers : all)
    for (std::size_t i = 0; i < BuffersDrawing::shown(buffers); ++i) {
      const Row& row = buffers.rows[i];
      std::string sections;
      for (std::size_t s = 0; s < std::min(row.sections.size(), kMostListed); ++s) {
        const Section& section = row.sections[s];
        if (s > 0) sections += ", ";
        sections += section.tensor ? element_text(tensors[*section.tensor], section.box)
                                   : fmt::format("padding of {}", section.elements);
      }
      if (row.sections.size() > kMostListed)
        sections += fmt::format(" and {} more", row.sections.size() - kMostListed);
      table.add_row({buffers.side, buffers.name, ranks_text(row.ranks), sections});
    }
}

}  // namespace

void draw_buffers(Node panel, const StoredRequests& stored) {
  std::vector<NamedBuffers> all = buffers_of(stored.source(), "before");
  for (NamedBuffers& buffers : buffers_of(stored.destination(), "after"))
    all.push_back(std::move(buffers));
  const ModelTensors& tensors = stored.source().tensors();
  BuffersDrawing(panel, tensors, all);
  bool has_more = std::any_of(all.begin(), all.end(), [](const NamedBuffers& buffers) {
    return buffers.rows.size() > BuffersDrawing::shown(buffers);
  });
  if (has_more)
    add(panel, "p", {{"class", "aside"}},
        fmt::format("Of each buffer the first {} different ranks are drawn.", kMostBufferRows));
  list_sections(panel, tensors, all);
}

}  // namespace reshard::sim
