"""English in the public domain, out of two Debian packages: Jane Austen's six novels, and the World English Bible."""

import html
import pathlib
import random
import re
import struct
import subprocess
import zlib

NOVELS, BIBLE = "r-cran-janeaustenr", "sword-text-web"
DOCUMENT = 6000  # characters of a document, about


def download(package, folder):
    """Unpacks the newest version that apt knows, without installing it."""
    place = folder / package
    if not place.exists():
        (folder / "apt").mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-qq", package], cwd=folder / "apt", check=True)
        archive = next((folder / "apt").glob(f"{package}_*.deb"))
        subprocess.run(["dpkg-deb", "-x", archive, place], check=True)
    return place


def r_strings(data):
    """The lines of a character vector as R's serialize() writes it: big-endian, version 3 (R Internals, 1.8)."""
    assert data[:6] == b"X\n\0\0\0\3", "not R's binary form, version 3"
    at = 18 + struct.unpack_from(">I", data, 14)[0]  # after format, three versions and the name of the encoding
    kind, count = struct.unpack_from(">II", data, at)
    assert kind & 255 == 16, "no character vector"
    at += 8
    for _ in range(count):
        length = struct.unpack_from(">I", data, at + 4)[0]
        yield data[at + 8:at + 8 + length].decode("utf-8")
        at += 8 + length


def read_novels(folder):
    """R's store of lazily loaded data: each object is its length, four bytes, and a zlib stream."""
    rest = next(folder.rglob("Rdata.rdb")).read_bytes()
    while rest:
        stream = zlib.decompressobj()
        yield "\n".join(r_strings(stream.decompress(rest[4:])))
        rest = stream.unused_data


def plain_text(osis):
    """OSIS without its markup: notes are left out, paragraphs and headings stand apart."""
    text = re.sub(r"<note\b.*?</note>", " ", osis, flags=re.S)
    text = re.sub(r"<title[^>]*>|</title>|<div[^>]*type=\"x-p\"[^>]*>|<chapter[^>]*>", "\n", text)
    text = html.unescape(re.sub(r"<[^>]+>", "", text))
    return re.sub(r"\s*\n\s*", "\n\n", re.sub(r"[ \t]+", " ", text)).strip()


def read_bible(folder):
    """SWORD's zText: .bzs holds place, length and unpacked length of each book in .bzz."""
    for part in ("ot", "nt"):
        books = next(folder.rglob(f"{part}.bzz")).read_bytes()
        for place, length, _ in struct.iter_unpack("<III", next(folder.rglob(f"{part}.bzs")).read_bytes()):
            yield plain_text(zlib.decompress(books[place:place + length]).decode("utf-8"))


def cut(text):
    """Documents that begin and end where paragraphs do."""
    document = ""
    for paragraph in re.split(r"\n\s*\n", text):
        document += ("\n\n" if document else "") + paragraph.strip()
        if len(document) >= DOCUMENT:
            yield document
            document = ""
    if len(document) > DOCUMENT // 10:
        yield document


def read_documents(folder):
    """In an order of their own, so that a split by position is a fair sample of both works."""
    texts = [*read_novels(download(NOVELS, folder)), *read_bible(download(BIBLE, folder))]
    documents = [document for text in texts for document in cut(text)]
    random.Random(1).shuffle(documents)
    return documents


def documents_of(path):
    """Of a text file of one's own."""
    documents = list(cut(pathlib.Path(path).read_text(encoding="utf-8")))
    random.Random(1).shuffle(documents)
    return documents
