//! The weight files inside the program. `scripts/convert_granite.py` and `scripts/export_coarse.py` write them and describe
//! their format.

use rustc_hash::FxHashMap;

/// Sections start on 64-byte boundaries of the file, so numbers of an aligned file can be read in place.
#[repr(C, align(64))]
struct Aligned<Bytes: ?Sized>(Bytes);

static MODEL: &Aligned<[u8]> = &Aligned(*include_bytes!("../../assets/granite-embedding-30m-english.bin"));
static COARSE: &Aligned<[u8]> = &Aligned(*include_bytes!("../../assets/coarse-encoder.bin"));

/// The sections of a file.
pub(super) struct ModelAsset {
    body: &'static [u8],
    sections: FxHashMap<String, (usize, usize)>,
}

const BUILT_IN: &str = "the weights are part of the program and were tested with it";

impl ModelAsset {
    /// The model and its tokenizer.
    pub(super) fn model() -> Self {
        Self::open(&MODEL.0)
    }

    /// The coarse encoder in the model's space.
    pub(super) fn coarse() -> Self {
        Self::open(&COARSE.0)
    }

    fn open(file: &'static [u8]) -> Self {
        assert_eq!(&file[..8], b"QUIPUEM1", "{BUILT_IN}");
        let length = u32::from_le_bytes(file[8..12].try_into().expect("four bytes")) as usize;
        let header: serde_json::Value = serde_json::from_slice(&file[12..12 + length]).expect(BUILT_IN);
        let number = |value: &serde_json::Value| usize::try_from(value.as_u64().expect(BUILT_IN)).expect(BUILT_IN);
        let sections = header["sections"].as_object().expect(BUILT_IN);
        Self {
            body: &file[12 + length..],
            sections: sections
                .iter()
                .map(|(name, place)| (name.clone(), (number(&place[0]), number(&place[1]))))
                .collect(),
        }
    }

    pub(super) fn bytes(&self, name: &str) -> &'static [u8] {
        let (start, length) = self.sections[name];
        &self.body[start..start + length]
    }

    pub(super) fn numbers<T: bytemuck::AnyBitPattern>(&self, name: &str) -> &'static [T] {
        bytemuck::cast_slice(self.bytes(name))
    }
}
