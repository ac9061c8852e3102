// Documents, examples, lists of files, conversations, grammars and run logs.
#include <cstdlib>
#include <memory>

#include "chat/messages.h"
#include "commands/generate/batch_file.h"
#include "data/corpus_index.h"
#include "data/document_reader.h"
#include "data/examples.h"
#include "data/labelled/lines.h"
#include "fuzz/folder.h"
#include "generate/grammar/gbnf.h"
#include "generate/grammar/json_schema.h"
#include "generate/grammar/program.h"
#include "growth.h"
#include "text/chat/template.h"
#include "text/train/make.h"
#include "train/checkpoint.h"
#include "train/report/report.h"

namespace linnet::growth {
namespace {

/// Lines "a NUMBER b".
std::string lines(std::size_t n, const std::string& before, const std::string& behind) {
    std::string text;
    for (std::size_t i = 0; i < n; i++) text += before + std::to_string(i) + behind + "\n";
    return text;
}

/// What `act` does with the path of a file of that name with these bytes.
template <class F>
Act with_file(const std::string& name, const std::string& bytes, F act) {
    auto folder = std::make_shared<fuzz::Folder>();
    return [folder, path = folder->with(name, bytes), act] { act(path); };
}

Act read_documents(const std::string& name, const std::string& bytes, const std::string& separator) {
    return with_file(name, bytes, [separator](const std::string& path) {
        ReadOptions options;
        options.separator = separator;
        options.piece = 64;
        options.cut = [](std::string_view text, std::size_t from) {
            return std::min(text.find(' ', from), text.size());
        };
        DocumentReader reader({path}, options);
        std::string text;
        for (DocumentPart part; reader.next(text, part);) text.clear();
    });
}

Act json_lines(std::size_t n) {
    return read_documents("d.jsonl", lines(n, "{\"id\":1,\"text\":\"caf\\u00e9 ", "\"}"), "");
}
Act separated(std::size_t n) {
    return read_documents("d.txt", lines(n, "a document\n", "\n----"), "----");
}
Act one_document(std::size_t n) {
    return read_documents("d.txt", lines(n, "the words of line ", ""), "");
}
/// The separator's beginning again and again.
Act nearly_separated(std::size_t n) {
    return read_documents("d.txt", std::string(n, '-'), std::string(100, '-') + "x");
}

Act labelled(std::size_t n, LabelledKind kind, const std::string& before, const std::string& behind) {
    return with_file("l.tsv", lines(n, before, behind), [kind](const std::string& path) {
        LabelledOptions options;
        options.inputs = {path};
        read_labelled(kind, options);
    });
}
Act pairs(std::size_t n) {
    return labelled(n, LabelledKind::pairs, "a source ", "\ta target");
}
Act tags(std::size_t n) {
    return labelled(n, LabelledKind::tags, "two ", "\tNOUN NUM");
}

Act examples(std::size_t n) {
    return with_file("e.jsonl", lines(n, "{\"prompt\":\"", "\",\"completion\":\"an answer\"}"),
                     [](const std::string& path) {
                         if (held_out_examples(read_examples({path}, {}), 0.1).empty()) std::abort();
                     });
}

Act batch_file(std::size_t n) {
    return with_file("b.jsonl", lines(n, "{\"prompt\":\"", "\",\"temp\":0.5}"),
                     [](const std::string& path) { read_batch_file(path, {}); });
}

Act corpus_index(std::size_t n) {
    std::string shards;
    for (std::size_t i = 0; i < n; i++)
        shards += (i ? "," : "") + std::string(R"({"file":"train_)") + std::to_string(1000000 + i).substr(1) +
                  R"(.bin","split":"train","documents":1,"tokens":8,"bytes":8,"sha256":")" +
                  std::string(64, 'a') + "\"}";
    const std::string sum = std::to_string(n), eight = std::to_string(8 * n);
    auto folder = std::make_shared<fuzz::Folder>();
    folder->with("index.json",
                 R"({"format":"linnet-corpus","vocab_size":23,"token_bytes":2,"tokenizer":"t.gguf",)"
                 R"("tokenizer_sha256":")" +
                     std::string(64, 'b') + R"(","validation_fraction":0,"documents":)" + sum +
                     ",\"tokens\":" + eight + ",\"bytes\":" + eight + ",\"skipped\":0,\"shards\":[" + shards +
                     "]}");
    return [folder] { corpus_index_json(read_corpus_index(folder->path())); };
}

Act conversation(std::size_t n) {
    std::string list;
    for (std::size_t i = 0; i < n; i++)
        list += (i ? "," : "") +
                std::string(R"({"role":"user","content":"Why?"},{"role":"assistant","content":"So."})");
    return [text = "[" + list + "]"] { parse_messages(text, "growth"); };
}

Act laid_out(std::size_t n) {
    const TokenizerPtr tokenizer = byte_tokenizer();
    return [tokenizer, turns = std::vector<ChatTurn>(n, {"Why?", ChatTurn::Answer{"So.", {}}})] {
        encode_chat(*tokenizer, chat_parts(chat_templates()[0], "Be short.", turns));
    };
}

/// Grammars, and the program that follows them.
Act compiled(const Grammar& grammar) {
    const TokenizerPtr tokenizer = byte_tokenizer();
    auto vocabulary = std::make_shared<GrammarVocabulary>(*tokenizer);
    return [tokenizer, vocabulary, grammar] { const GrammarProgram program(grammar, *vocabulary, "growth"); };
}

Act gbnf(std::size_t n) {
    std::string text = "root ::= r0\n";
    for (std::size_t i = 0; i < n; i++)
        text += "r" + std::to_string(i) + " ::= \"a\" [b-d]* " +
                (i + 1 < n ? "r" + std::to_string(i + 1) : "") + "\n";
    return [text] { compiled(read_gbnf(text, "growth"))(); };
}

Act schema(std::size_t n) {
    std::string properties, names;
    for (std::size_t i = 0; i < n; i++) {
        properties += (i ? ",\"p" : "\"p") + std::to_string(i) + "\":{\"type\":\"integer\"}";
        names += (i ? ",\"p" : "\"p") + std::to_string(i) + "\"";
    }
    const std::string text =
        R"({"type":"object","properties":{)" + properties + "},\"required\":[" + names + "]}";
    return [text] { compiled(read_json_schema(text, "growth"))(); };
}

Act run_log(std::size_t n) {
    std::string log;
    for (std::size_t i = 1; i <= n; i++) {
        const std::string step = "\"step\":" + std::to_string(i);
        log += R"({"event":"step",)" + step +
               R"(,"loss":3.5,"lr":1e-3,"grad_norm":2.8,"tokens_per_s":6499.9,"seconds":0.6})"
               "\n"
               R"({"event":"eval",)" +
               step +
               R"(,"loss":4.7,"bpb":3.2,"tokens":49,"seconds":2.5})"
               "\n"
               R"({"event":"sample",)" +
               step +
               R"(,"prompt":"A","text":"& the\n"})"
               "\n";
    }
    return [log] { report_html(log, "growth"); };
}

}  // namespace

std::vector<Row> data_rows() {
    return {{"documents: JSON lines", 1000, json_lines},
            {"documents: a file with separators", 1000, separated},
            {"documents: one in pieces", 1000, one_document},
            {"documents: nearly a separator", 4000, nearly_separated},
            {"labelled: pairs", 1000, pairs},
            {"labelled: tags", 1000, tags},
            {"examples: prompts and completions", 1000, examples},
            {"generate: a batch file", 1000, batch_file},
            {"corpus: shards of an index", 500, corpus_index},
            {"chat: a conversation's file", 1000, conversation},
            {"chat: turns laid out and encoded", 500, laid_out},
            {"grammar: rules of GBNF", 200, gbnf},
            {"grammar: properties of a JSON schema", 50, schema},
            {"report: steps of a log", 250, run_log}};
}

}  // namespace linnet::growth
