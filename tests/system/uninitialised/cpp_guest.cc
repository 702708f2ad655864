// Right programs of C++'s library: streams, maps, strings, exceptions.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

struct Node {
  char tag;
  int value;
  std::optional<int> maybe;
  std::unique_ptr<Node> next;
};

int main() {
  std::map<std::string, int> words;
  std::unordered_map<int, std::string> names;
  for (int i = 0; i < 200; ++i) {
    words["word" + std::to_string(i % 37)] += i;
    names[i * 7 % 101] = std::string(static_cast<size_t>(i % 40), 'x');
  }
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [word, count] : words) sorted.emplace_back(count, word);
  std::sort(sorted.begin(), sorted.end());
  std::ostringstream text;
  for (const auto& [count, word] : sorted)
    text << word << ' ' << count << ' ' << 0.5 * count << '\n';
  std::istringstream in(text.str());
  std::string word;
  int count = 0, lines = 0;
  double half = 0, sum = 0;
  while (in >> word >> count >> half) ++lines, sum += half;
  std::unique_ptr<Node> list;
  for (int i = 0; i < 50; ++i) {
    auto node = std::make_unique<Node>();
    node->tag = 'n';
    node->value = i;
    if (i % 2) node->maybe = i;
    node->next = std::move(list);
    list = std::move(node);
  }
  int total = 0;
  for (const Node* n = list.get(); n; n = n->next.get()) total += n->value + n->maybe.value_or(1);
  std::variant<int, std::string, double> any = 3;
  any = std::string("three");
  any = 3.0;
  try {
    std::get<int>(any);
  } catch (const std::exception& error) {
    std::cout << error.what() << '\n';
  }
  std::cout << lines << ' ' << sum << ' ' << total << ' ' << names.size() << std::endl;
  return 0;
}
