// SPDX-License-Identifier: MIT
// Reads just as much DWARF as a call needs: "DWARF Debugging Information Format", version 5, whose
// sections the comments name. Of a guest's program nothing else could: its library has to be small
// and static. Nothing in the file is trusted.
#include "signature.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum section { kInfo, kAbbrev, kStr, kLineStr, kAddr, kStrOffsets, kSections };

struct bytes {
  const uint8_t* at;
  const uint8_t* end;
};

struct gpusim_offload_debug {
  struct bytes sections[kSections];
  uint8_t content[];
};

// 7.5.1, 7.5.3, 7.5.6: the few numbers that matter here.
enum {
  kTagClass = 0x02,
  kTagEnumeration = 0x04,
  kTagFormalParameter = 0x05,
  kTagMember = 0x0d,
  kTagPointer = 0x0f,
  kTagReference = 0x10,
  kTagStructure = 0x13,
  kTagTypedef = 0x16,
  kTagUnion = 0x17,
  kTagUnspecifiedParameters = 0x18,
  kTagInheritance = 0x1c,
  kTagPointerToMember = 0x1f,
  kTagBase = 0x24,
  kTagConst = 0x26,
  kTagSubprogram = 0x2e,
  kTagVolatile = 0x35,
  kTagRestrict = 0x37,
  kTagRvalueReference = 0x42,
  kTagAtomic = 0x47,

  kAttributeSibling = 0x01,
  kAttributeName = 0x03,
  kAttributeByteSize = 0x0b,
  kAttributeLowPc = 0x11,
  kAttributePrototyped = 0x27,
  kAttributeAbstractOrigin = 0x31,
  kAttributeEncoding = 0x3e,
  kAttributeSpecification = 0x47,
  kAttributeType = 0x49,
  kAttributeStrOffsetsBase = 0x72,
  kAttributeAddrBase = 0x73,

  kEncodingFloat = 0x04,
};

// ---- Bytes -------------------------------------------------------------------------------------

// All give 0 and leave nothing at the end.
static uint64_t take(struct bytes* b, unsigned size_bytes) {
  uint64_t value = 0;
  if ((size_t)(b->end - b->at) < size_bytes) {
    b->at = b->end;
    return 0;
  }
  for (unsigned i = 0; i < size_bytes && i < 8; ++i) value |= (uint64_t)b->at[i] << (8 * i);
  b->at += size_bytes;
  return value;
}

static void skip(struct bytes* b, uint64_t size_bytes) {
  const uint64_t left = (uint64_t)(b->end - b->at);
  b->at += size_bytes < left ? size_bytes : left;
}

static uint64_t take_uleb(struct bytes* b) {
  uint64_t value = 0;
  for (unsigned shift = 0; b->at < b->end; shift += 7) {
    const uint8_t byte = *b->at++;
    if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) break;
  }
  return value;
}

static const char* take_string(struct bytes* b) {
  const uint8_t* const zero = memchr(b->at, 0, (size_t)(b->end - b->at));
  const char* const text = zero != NULL ? (const char*)b->at : "";
  b->at = zero != NULL ? zero + 1 : b->end;
  return text;
}

static struct bytes from(const struct bytes* section, uint64_t offset) {
  struct bytes b = *section;
  skip(&b, offset);
  return b;
}

// ---- The file ----------------------------------------------------------------------------------

static bool in_file(uint64_t offset, uint64_t size_bytes, size_t file_bytes) {
  return offset <= file_bytes && size_bytes <= file_bytes - offset;
}

static int section_number(const char* name) {
  static const char* const names[kSections] = {".debug_info", ".debug_abbrev",
                                               ".debug_str",  ".debug_line_str",
                                               ".debug_addr", ".debug_str_offsets"};
  for (int i = 0; i < kSections; ++i) {
    if (strcmp(name, names[i]) == 0) return i;
  }
  return -1;
}

struct gpusim_offload_debug* gpusim_offload_debug_read(const void* bytes, size_t size_bytes) {
  const uint8_t* const file = bytes;
  Elf64_Ehdr header;
  if (size_bytes < sizeof header) return NULL;
  memcpy(&header, file, sizeof header);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_shstrndx >= header.e_shnum ||
      !in_file(header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr), size_bytes)) {
    return NULL;
  }
  const uint8_t* const table = file + header.e_shoff;
  Elf64_Shdr names;
  memcpy(&names, table + header.e_shstrndx * sizeof names, sizeof names);
  if (!in_file(names.sh_offset, names.sh_size, size_bytes)) return NULL;
  const struct bytes name_bytes = {file + names.sh_offset, file + names.sh_offset + names.sh_size};
  Elf64_Shdr found[kSections];
  memset(found, 0, sizeof found);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    memcpy(&section, table + i * sizeof section, sizeof section);
    struct bytes name = from(&name_bytes, section.sh_name);
    const int number = section_number(take_string(&name));
    if (number < 0 || section.sh_type == SHT_NOBITS || (section.sh_flags & SHF_COMPRESSED) != 0 ||
        !in_file(section.sh_offset, section.sh_size, size_bytes)) {
      continue;
    }
    found[number] = section;
  }
  if (found[kInfo].sh_size == 0 || found[kAbbrev].sh_size == 0) return NULL;
  size_t total = 0;
  for (int i = 0; i < kSections; ++i) total += found[i].sh_size;
  struct gpusim_offload_debug* const debug = malloc(sizeof *debug + total);
  if (debug == NULL) return NULL;
  uint8_t* to = debug->content;
  for (int i = 0; i < kSections; ++i) {
    memcpy(to, file + found[i].sh_offset, found[i].sh_size);
    debug->sections[i] = (struct bytes){to, to + found[i].sh_size};
    to += found[i].sh_size;
  }
  return debug;
}

// ---- Units and entries -------------------------------------------------------------------------

struct unit {
  const struct gpusim_offload_debug* debug;
  const uint8_t* begin;  // of its header
  struct bytes entries;
  unsigned version, offset_bytes, address_bytes;
  uint64_t address_base, string_base;
  const uint8_t** abbreviations;  // by code; malloc'ed
  uint64_t abbreviation_count;
};

// An entry's attributes, as far as they are of interest.
struct entry {
  uint64_t tag;
  bool has_children, has_low_pc, is_prototyped;
  uint64_t low_pc, byte_size, encoding, address_base, string_base;
  const uint8_t *type, *origin, *sibling;  // in .debug_info; NULL: none
  const char* name;
  struct bytes rest;  // what follows it: its children, if it has any
};

// 7.5.1.1. False: there are no more units.
static bool next_unit(struct bytes* info, struct unit* unit) {
  while (info->at < info->end) {
    unit->begin = info->at;
    unit->offset_bytes = 4;
    uint64_t length = take(info, 4);
    if (length == 0xffffffff) {
      unit->offset_bytes = 8;
      length = take(info, 8);
    }
    struct bytes b = *info;
    skip(info, length);
    b.end = info->at;
    unit->version = (unsigned)take(&b, 2);
    enum { kCompile = 1, kPartial = 3 };
    uint64_t type = kCompile;
    if (unit->version >= 5) {
      type = take(&b, 1);
      unit->address_bytes = (unsigned)take(&b, 1);
    }
    const uint64_t abbreviations = take(&b, unit->offset_bytes);
    if (unit->version < 5) unit->address_bytes = (unsigned)take(&b, 1);
    if (unit->version < 2 || unit->version > 5 || (type != kCompile && type != kPartial)) continue;
    unit->entries = b;
    unit->address_base = unit->string_base = 0;
    unit->abbreviations = NULL;
    unit->abbreviation_count = abbreviations;  // until read_abbreviations()
    return true;
  }
  return false;
}

// 7.5.3. Codes are small numbers in what compilers write; others are not looked for.
static bool read_abbreviations(struct unit* unit) {
  enum { kMostCodes = 1 << 16 };
  struct bytes b = from(&unit->debug->sections[kAbbrev], unit->abbreviation_count);
  const struct bytes all = b;
  uint64_t most = 0;
  unit->abbreviation_count = 0;
  for (int pass = 0; pass < 2; ++pass) {
    b = all;
    for (uint64_t code; b.at < b.end && (code = take_uleb(&b)) != 0;) {
      if (pass == 0 && code > most && code < kMostCodes) most = code;
      if (pass == 1 && code <= most) unit->abbreviations[code] = b.at;
      take_uleb(&b);
      take(&b, 1);
      enum { kImplicitConst = 0x21 };
      for (uint64_t attribute = 1, form = 1; b.at < b.end && (attribute != 0 || form != 0);) {
        attribute = take_uleb(&b);
        form = take_uleb(&b);
        if (form == kImplicitConst) take_uleb(&b);
      }
    }
    if (pass != 0) break;
    unit->abbreviations = calloc(most + 1, sizeof *unit->abbreviations);
    if (unit->abbreviations == NULL) return false;
  }
  unit->abbreviation_count = most + 1;
  return true;
}

struct value {
  uint64_t number;
  const uint8_t* entry;  // of a reference
  const char* text;
};

static struct value reference(const struct unit* unit, uint64_t offset, bool in_section) {
  const struct bytes* const info = &unit->debug->sections[kInfo];
  const uint8_t* const base = in_section ? info->at : unit->begin;
  const bool is_there = offset < (uint64_t)(info->end - base);
  return (struct value){.entry = is_there ? base + offset : NULL};
}

static struct value text_at(const struct unit* unit, enum section section, uint64_t offset) {
  struct bytes b = from(&unit->debug->sections[section], offset);
  return (struct value){.text = take_string(&b)};
}

static struct value address_number(const struct unit* unit, uint64_t index) {
  if (index > UINT32_MAX) return (struct value){0};
  struct bytes b =
      from(&unit->debug->sections[kAddr], unit->address_base + index * unit->address_bytes);
  return (struct value){.number = take(&b, unit->address_bytes)};
}

static struct value indexed_text(const struct unit* unit, uint64_t index) {
  if (index > UINT32_MAX) return (struct value){.text = ""};
  struct bytes b =
      from(&unit->debug->sections[kStrOffsets], unit->string_base + index * unit->offset_bytes);
  return text_at(unit, kStr, take(&b, unit->offset_bytes));
}

// 7.5.5, 7.5.6. False: a form that nobody knows.
static bool take_form(const struct unit* unit, uint64_t form, int64_t implicit, struct bytes* b,
                      struct value* v) {
  *v = (struct value){0};
  // clang-format off
  switch (form) {
    case 0x01: v->number = take(b, unit->address_bytes); return true;
    case 0x03: skip(b, take(b, 2)); return true;
    case 0x04: skip(b, take(b, 4)); return true;
    case 0x05: v->number = take(b, 2); return true;
    case 0x06: v->number = take(b, 4); return true;
    case 0x07: v->number = take(b, 8); return true;
    case 0x08: v->text = take_string(b); return true;
    case 0x09: case 0x18: skip(b, take_uleb(b)); return true;
    case 0x0a: skip(b, take(b, 1)); return true;
    case 0x0b: case 0x0c: v->number = take(b, 1); return true;
    case 0x0d: case 0x0f: v->number = take_uleb(b); return true;
    case 0x0e: *v = text_at(unit, kStr, take(b, unit->offset_bytes)); return true;
    case 0x10:
      *v = reference(unit, take(b, unit->version == 2 ? unit->address_bytes : unit->offset_bytes),
                     true);
      return true;
    case 0x11: *v = reference(unit, take(b, 1), false); return true;
    case 0x12: *v = reference(unit, take(b, 2), false); return true;
    case 0x13: *v = reference(unit, take(b, 4), false); return true;
    case 0x14: *v = reference(unit, take(b, 8), false); return true;
    case 0x15: *v = reference(unit, take_uleb(b), false); return true;
    case 0x17: v->number = take(b, unit->offset_bytes); return true;
    case 0x19: v->number = 1; return true;
    case 0x1a: *v = indexed_text(unit, take_uleb(b)); return true;
    case 0x1b: *v = address_number(unit, take_uleb(b)); return true;
    case 0x1c: skip(b, 4); return true;
    case 0x1d: case 0x1f20: case 0x1f21: skip(b, unit->offset_bytes); return true;
    case 0x1e: skip(b, 16); return true;
    case 0x1f: *v = text_at(unit, kLineStr, take(b, unit->offset_bytes)); return true;
    case 0x20: case 0x24: skip(b, 8); return true;
    case 0x22: case 0x23: take_uleb(b); return true;
    case 0x21: v->number = (uint64_t)implicit; return true;
    case 0x25: case 0x26: case 0x27: case 0x28:
      *v = indexed_text(unit, take(b, (unsigned)(form - 0x24)));
      return true;
    case 0x29: case 0x2a: case 0x2b: case 0x2c:
      *v = address_number(unit, take(b, (unsigned)(form - 0x28)));
      return true;
    default: return false;
  }
  // clang-format on
}

// The next entry in `b`; a tag of 0 ends a list of children. False: the end, or not understood.
static bool take_entry(const struct unit* unit, struct bytes* b, struct entry* entry) {
  memset(entry, 0, sizeof *entry);
  if (b->at >= b->end) return false;
  const uint64_t code = take_uleb(b);
  entry->rest = *b;
  if (code == 0) return true;
  if (code >= unit->abbreviation_count || unit->abbreviations[code] == NULL) return false;
  struct bytes a = {unit->abbreviations[code], unit->debug->sections[kAbbrev].end};
  entry->tag = take_uleb(&a);
  entry->has_children = take(&a, 1) != 0;
  while (a.at < a.end) {
    const uint64_t attribute = take_uleb(&a);
    uint64_t form = take_uleb(&a);
    enum { kIndirect = 0x16, kImplicitConst = 0x21 };
    const int64_t implicit = form == kImplicitConst ? (int64_t)take_uleb(&a) : 0;
    if (attribute == 0 && form == 0) break;
    if (form == kIndirect) form = take_uleb(b);
    struct value v;
    if (!take_form(unit, form, implicit, b, &v)) return false;
    switch (attribute) {
      case kAttributeSibling:
        entry->sibling = v.entry;
        break;
      case kAttributeName:
        entry->name = v.text;
        break;
      case kAttributeByteSize:
        entry->byte_size = v.number;
        break;
      case kAttributeLowPc:
        entry->low_pc = v.number;
        entry->has_low_pc = true;
        break;
      case kAttributePrototyped:
        entry->is_prototyped = v.number != 0;
        break;
      case kAttributeAbstractOrigin:
      case kAttributeSpecification:
        entry->origin = v.entry;
        break;
      case kAttributeEncoding:
        entry->encoding = v.number;
        break;
      case kAttributeType:
        entry->type = v.entry;
        break;
      case kAttributeStrOffsetsBase:
        entry->string_base = v.number;
        break;
      case kAttributeAddrBase:
        entry->address_base = v.number;
        break;
      default:
        break;
    }
  }
  entry->rest = *b;
  return true;
}

// Reads what all entries of the unit need.
static bool use_unit(struct unit* unit) {
  if (!read_abbreviations(unit)) return false;
  struct bytes b = unit->entries;
  struct entry first;
  if (unit->version >= 5 && take_entry(unit, &b, &first)) {
    unit->address_base = first.address_base;
    unit->string_base = first.string_base;
  }
  return true;
}

// The entry at a reference, of this unit.
static bool entry_at(const struct unit* unit, const uint8_t* at, struct entry* entry) {
  if (at == NULL || at < unit->entries.at || at >= unit->entries.end) return false;
  struct bytes b = {at, unit->entries.end};
  return take_entry(unit, &b, entry) && entry->tag != 0;
}

// Over the entry's children, so that `b` is at what follows it.
static void skip_children(const struct unit* unit, const struct entry* parent, struct bytes* b) {
  if (!parent->has_children) return;
  if (parent->sibling != NULL && parent->sibling > b->at && parent->sibling < b->end) {
    b->at = parent->sibling;
    return;
  }
  struct entry entry;
  for (unsigned depth = 1; depth != 0;) {
    if (!take_entry(unit, b, &entry)) {
      b->at = b->end;
      return;
    }
    if (entry.tag == 0) {
      --depth;
    } else if (entry.has_children) {
      ++depth;
    }
  }
}

// ---- Types -------------------------------------------------------------------------------------

// Without names and qualifiers.
static bool plain_type(const struct unit* unit, const uint8_t* type, struct entry* entry) {
  enum { kMostDepth = 64 };
  for (int depth = 0; depth < kMostDepth; ++depth) {
    if (!entry_at(unit, type, entry)) return false;
    switch (entry->tag) {
      case kTagTypedef:
      case kTagConst:
      case kTagVolatile:
      case kTagRestrict:
      case kTagAtomic:
        type = entry->type;
        break;
      default:
        return true;
    }
  }
  return false;
}

static enum gpusim_offload_type base_type(const struct entry* type) {
  if (type->encoding == kEncodingFloat) {
    return type->byte_size == 4 ? kTypeFloat : type->byte_size == 8 ? kTypeDouble : kTypeUnknown;
  }
  return type->byte_size <= 8 ? kTypeInteger : kTypeUnknown;
}

// A structure of 1 to 4 members of one floating-point type goes into registers of its own.
static enum gpusim_offload_type structure_type(const struct unit* unit,
                                               const struct entry* structure) {
  struct bytes b = structure->rest;
  struct entry member;
  struct entry type;
  enum gpusim_offload_type all = kTypeUnknown;
  unsigned count = 0;
  while (structure->has_children && take_entry(unit, &b, &member) && member.tag != 0) {
    skip_children(unit, &member, &b);
    if (member.tag == kTagInheritance) return kTypeUnknown;
    if (member.tag != kTagMember) continue;
    if (!plain_type(unit, member.type, &type)) return kTypeUnknown;
    if (type.tag != kTagBase) {
      // What lies inside of it may be of that kind.
      const bool is_scalar = type.tag == kTagPointer || type.tag == kTagEnumeration;
      if (!is_scalar)
        return structure->byte_size > 4 * sizeof(double) ? kTypeStructure : kTypeUnknown;
      return kTypeStructure;
    }
    const enum gpusim_offload_type t = base_type(&type);
    if ((t != kTypeFloat && t != kTypeDouble) || (count != 0 && t != all)) return kTypeStructure;
    all = t;
    ++count;
  }
  if (count == 0 || count > 4) return kTypeStructure;
  return all == kTypeFloat ? kTypeFloats : kTypeDoubles;
}

static enum gpusim_offload_type type_of(const struct unit* unit, const uint8_t* at,
                                        uint64_t* size_bytes) {
  struct entry type;
  if (!plain_type(unit, at, &type)) return kTypeUnknown;
  *size_bytes = type.byte_size;
  switch (type.tag) {
    case kTagPointer:
    case kTagReference:
    case kTagRvalueReference:
    case kTagEnumeration:
      return kTypeInteger;
    case kTagBase:
      return base_type(&type);
    case kTagStructure:
    case kTagClass:
      return type.byte_size != 0 ? structure_type(unit, &type) : kTypeUnknown;
    default:
      return kTypeUnknown;
  }
}

// ---- Functions ---------------------------------------------------------------------------------

static void copy_name(char* to, const char* name) {
  size_t size = name != NULL ? strlen(name) : 0;
  if (size >= kNameBytes) size = kNameBytes - 1;
  if (size != 0) memcpy(to, name, size);
  to[size] = 0;
}

static void read_function(const struct unit* unit, const struct entry* function,
                          struct gpusim_offload_signature* signature) {
  struct entry origin = *function;
  for (int depth = 0; depth < 4 && origin.origin != NULL; ++depth) {
    if (!entry_at(unit, origin.origin, &origin)) return;
  }
  copy_name(signature->name, function->name != NULL ? function->name : origin.name);
  struct bytes b = function->rest;
  struct entry entry;
  while (function->has_children && take_entry(unit, &b, &entry) && entry.tag != 0) {
    skip_children(unit, &entry, &b);
    if (entry.tag == kTagUnspecifiedParameters) signature->is_open = true;
    if (entry.tag != kTagFormalParameter) continue;
    const unsigned i = signature->count++;
    if (i >= kMostSignature) continue;
    const char* name = entry.name;
    if (entry.origin != NULL && !entry_at(unit, entry.origin, &entry)) continue;
    copy_name(signature->parameters[i].name, name != NULL ? name : entry.name);
    signature->parameters[i].type = type_of(unit, entry.type, &signature->parameters[i].size_bytes);
  }
  // f() of old C takes anything. Of C++ every function is prototyped, and not all compilers say so.
  if (signature->count == 0 && !function->is_prototyped && !origin.is_prototyped) {
    signature->is_open = true;
  }
  signature->is_known = true;
}

static bool find_in_unit(struct unit* unit, uint64_t address,
                         struct gpusim_offload_signature* signature) {
  bool found = false;
  if (use_unit(unit)) {
    struct bytes b = unit->entries;
    struct entry entry;
    // Functions stand in the unit itself, or in namespaces and classes.
    while (!found && take_entry(unit, &b, &entry)) {
      if (entry.tag != kTagSubprogram) continue;
      found = entry.has_low_pc && entry.low_pc == address;
      if (found) {
        read_function(unit, &entry, signature);
      } else {
        skip_children(unit, &entry, &b);
      }
    }
  }
  free(unit->abbreviations);
  return found;
}

void gpusim_offload_find_signature(const struct gpusim_offload_debug* debug, uint64_t address,
                                   struct gpusim_offload_signature* signature) {
  memset(signature, 0, sizeof *signature);
  if (debug == NULL) return;
  struct bytes info = debug->sections[kInfo];
  struct unit unit = {.debug = debug};
  while (next_unit(&info, &unit)) {
    if (find_in_unit(&unit, address, signature)) return;
  }
}
