//! Posts with answers in many scripts, with emoji, escapes and characters outside the basic plane.

use super::{Random, Writer};

/// In the form of JSON strings: their escapes are part of the test.
const SENTENCES: [&str; 14] = [
    "今朝は川の水位が三センチ上がりました。",
    "水門を開ける時間は、掲示板でお知らせします🌊",
    "発電所の見学会は来週の土曜日です。雨でも行います。",
    "ارتفع منسوب المياه هذا الصباح قليلا.",
    "تفتح البوابة عند الظهر، فابتعدوا عن الضفة من فضلكم.",
    "Der Pegel an der oberen Brücke fällt – größere Schäden gab es nicht.",
    "Le niveau baisse d\\u00e9j\\u00e0 ; la vanne reste ferm\\u00e9e jusqu'\\u00e0 midi.",
    "Уровень воды снова в норме, спасибо всем!",
    "수문은 내일 아침에 다시 열립니다 👍🏽",
    "The gauge said \\\"4.2 m\\\" at noon\\nand 3.9 m at three.",
    "See C:\\\\gauges\\\\upper\\tor https:\\/\\/www.example.org\\/gauges",
    "Two boats \\ud83d\\udea4\\ud83d\\udea4 and a family 👨‍👩‍👧‍👦 on the bank",
    "जलाशय आज भरा हुआ है।",
    "古い字の「𠮷」も使います。",
];
const NAMES: [&str; 7] = ["Ayşe", "さくら", "Zoë", "محمود", "Олег", "Nguyễn Văn An", "d'Alembert"];
const PLACES: [&str; 5] = ["Tōkyō", "القاهرة", "Zürich", "São Paulo", "null island"];
const LANGUAGES: [&str; 6] = ["ja", "ar", "de", "fr", "ru", "en"];

pub(super) fn write(out: &mut Writer<'_>, random: &mut Random, number: u64) {
    out.text("{\"type\":\"post\",\"id\":").number(number).text(",\"time\":\"").time(number / 3);
    out.text("\",\"lang\":\"").text(random.pick(&LANGUAGES)).text("\",\"user\":");
    write_user(out, random);
    out.text(",\"text\":\"");
    write_sentences(out, random, 7);
    out.text("\",\"tags\":[\"川\",\"پل\",\"n\\u00b0").number(random.below(100)).text("\"],\"answers\":[");
    for answer in 0..3 + random.below(9) {
        out.text(if answer == 0 { "{\"user\":" } else { ",{\"user\":" });
        write_user(out, random);
        out.text(",\"text\":\"");
        write_sentences(out, random, 2);
        out.text("\"").member("likes", random.size(12)).text("}");
    }
    out.text("]}");
}

fn write_user(out: &mut Writer<'_>, random: &mut Random) {
    out.text("{\"name\":\"").text(random.pick(&NAMES)).text("\",\"place\":\"").text(random.pick(&PLACES));
    out.text("\"").member("followers", random.size(20)).text("}");
}

fn write_sentences(out: &mut Writer<'_>, random: &mut Random, count: u64) {
    for sentence in 0..count {
        out.text(if sentence == 0 { "" } else { " " }).text(random.pick(&SENTENCES));
    }
}
